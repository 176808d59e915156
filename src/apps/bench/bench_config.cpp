/// Options of fluentps-bench.
#include <fmt/format.h>

#include <boost/program_options.hpp>
#include <sstream>

#include "apps/bench/bench_app.hpp"
#include "fluentps/error.hpp"
#include "text/spec.hpp"

namespace fluentps::app {
namespace {

namespace po = boost::program_options;

constexpr std::int64_t kMostParameters = 100'000'000'000;
constexpr std::uint32_t kMostRepeats = 10'000'000;

// clang-format off
po::options_description bench_options(BenchConfig& c, std::string& sizes, std::uint32_t& repeat) {
  auto& s = c.session;
  po::options_description all("Options", 100);
  all.add_options()
      ("help,h", po::bool_switch(&c.help), "this text")
      ("servers", po::value(&s.servers)->default_value(s.servers), "ranks that become servers; the others are workers")
      ("placement", po::value(&s.placement)->default_value(s.placement), "spread, first or last ranks")
      ("params", po::value(&sizes)->default_value(sizes), "float32 parameters, several with commas; suffixes k, M, G")
      ("sync", po::value(&s.sync)->default_value("bsp"), "synchronization model")
      ("release", po::value(&s.release)->default_value(s.release), "soft or lazy")
      ("coordination", po::value(&s.coordination)->default_value(s.coordination), "per-server or central")
      ("slicing", po::value(&s.slicing)->default_value(s.slicing), "eps, tensor or range")
      ("repeat", po::value(&repeat)->default_value(repeat), "iterations; 0: as many as move about 4 GB, 10 to 2000")
      ("transport", po::value(&s.transport)->default_value(s.transport), "auto, rma or p2p")
      ("chunk-kib", po::value(&s.chunk_kib)->default_value(s.chunk_kib), "size of one transfer; 0: by the shard and the transport")
      ("ring", po::value(&s.ring)->default_value(s.ring), "chunks in flight per worker and server; 0: by the transport")
      ("wait", po::value(&s.wait)->default_value(s.wait), "auto, spin, yield or sleep")
      ("wire", po::value(&s.wire)->default_value(s.wire), "fp32, bf16 or fp16")
      ("gpu-transfer", po::value(&s.gpu_transfer)->default_value(s.gpu_transfer), "off, auto, direct or staged; needs make CUDA=1")
      ("references", po::value(&c.references)->default_value(c.references), "measure memcpy, put, get, send, allreduce too")
      ("trace", po::value(&s.out)->default_value(s.out), "folder for traces of the measured runs; empty: no trace")
      ("out", po::value(&c.out)->default_value(c.out), "write OUT.csv and OUT.h5, a row per size; empty: neither");
  return all;
}
// clang-format on

std::vector<std::int64_t> parse_sizes(const std::string& text) {
  std::vector<std::int64_t> sizes;
  std::istringstream in(text);
  for (std::string item; std::getline(in, item, ',');)
    sizes.push_back(Spec("size:params=" + item, "--params").count("params", 0, 1, kMostParameters));
  if (sizes.empty()) throw UsageError("--params is empty; give numbers such as 853018 or 61M");
  return sizes;
}

}  // namespace

BenchConfig parse_bench_config(int argc, const char* const* argv) {
  BenchConfig config;
  std::string sizes = "256,853018,61M";
  std::uint32_t repeat = 0;
  const auto options = bench_options(config, sizes, repeat);
  try {
    po::variables_map values;
    po::store(po::command_line_parser(argc, argv)
                  .options(options)
                  .positional({})
                  .style(po::command_line_style::unix_style & ~po::command_line_style::allow_guessing)
                  .run(),
              values);
    po::notify(values);
  } catch (const po::error& error) {
    throw UsageError(fmt::format("{}; see --help", error.what()));
  }
  if (repeat > kMostRepeats) throw UsageError(fmt::format("--repeat is {}; it must be 0 to {}", repeat, kMostRepeats));
  config.sizes = parse_sizes(sizes);
  config.repeat = static_cast<int>(repeat);
  return config;
}

std::string bench_help_text() {
  BenchConfig config;
  std::string sizes = "256,853018,61M";
  std::uint32_t repeat = 0;
  std::ostringstream out;
  out << "fluentps-bench: push+pull between workers and servers, beside what the machine can do (docs/benchmark.md)\n"
         "usage: mpirun -np RANKS fluentps-bench [options]\n"
      << bench_options(config, sizes, repeat);
  return out.str();
}

}  // namespace fluentps::app
