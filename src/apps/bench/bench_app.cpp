#include "apps/bench/bench_app.hpp"

#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "apps/bench/measure.hpp"
#include "apps/bench/references.hpp"
#include "fluentps/error.hpp"
#include "net/roles.hpp"
#include "trace/columns_file.hpp"
#include "trace/provenance.hpp"

namespace fluentps::app {
namespace {

constexpr double kGiga = 1e9;
constexpr double kMoved_bytes = 4e9;
constexpr int kFewest = 10;
constexpr int kMost = 2000;

int repeats(const BenchConfig& config, std::int64_t parameters, std::uint32_t workers) {
  if (config.repeat > 0) return config.repeat;
  const double bytes = 8.0 * static_cast<double>(parameters) * workers;
  return std::clamp(static_cast<int>(kMoved_bytes / bytes), kFewest, kMost);
}

/// Bytes that all workers push and pull in one iteration.
double iteration_bytes(const Measurement& m, std::uint32_t workers) {
  return 2.0 * sizeof(float) * static_cast<double>(m.parameters) * workers;
}

void print_measurement(const Measurement& m, std::uint32_t workers) {
  fmt::print("{} parameters, {} iterations, transport {}\n", m.parameters, m.repeat, m.transport);
  fmt::print(
      "  {:.1f} iterations/s, {:.2f} GB/s, latency p50 {:.1f} us, p90 {:.1f}, p99 {:.1f}; push {:.0f} %, wait {:.0f} "
      "%, "
      "pull {:.0f} %\n",
      m.iterations_per_s(), iteration_bytes(m, workers) * m.iterations_per_s() / kGiga, m.percentile_s(50) * 1e6,
      m.percentile_s(90) * 1e6, m.percentile_s(99) * 1e6, m.push_share * 100, m.wait_share * 100, m.pull_share * 100);
}

/// Ratios of medians, so 1 is as good as the reference and larger is slower.
void print_references(const Measurement& m, const References& r, std::uint32_t workers) {
  const double iteration_s = m.percentile_s(50);
  const double apply_s = 3.0 * sizeof(float) * static_cast<double>(m.parameters) / (r.triad_one_gbs * kGiga);
  fmt::print("  memcpy {:.1f} GB/s one core, {:.1f} all; triad {:.1f} one, {:.1f} all\n", r.memcpy_one_gbs,
             r.memcpy_all_gbs, r.triad_one_gbs, r.triad_all_gbs);
  fmt::print(
      "  raw put {:.1f} us, get {:.1f} us, all workers put+get {:.1f} us; bare exchange {:.1f} us; send+recv {:.1f} "
      "us; "
      "allreduce {:.1f} us\n",
      r.put_s * 1e6, r.get_s * 1e6, r.put_get_all_s * 1e6, r.exchange_s * 1e6, r.pingpong_s * 1e6, r.allreduce_s * 1e6);
  fmt::print("  median iteration / (put + apply at triad speed + get)   {:.2f}\n",
             iteration_s / (r.put_s + apply_s + r.get_s));
  fmt::print("  median iteration / (all workers' put + get)             {:.2f}  ({:.0f} % of their bandwidth)\n",
             iteration_s / r.put_get_all_s, 100 * r.put_get_all_s / iteration_s);
  fmt::print("  median iteration / bare exchange                        {:.2f}\n", iteration_s / r.exchange_s);
  fmt::print("  median iteration / two-sided ping-pong                  {:.2f}\n", iteration_s / r.pingpong_s);
  if (workers > 1)
    fmt::print("  median iteration / (allreduce + local update)           {:.2f}\n",
               iteration_s / (r.allreduce_s + r.local_update_s));
}

/// Names and values of a row of OUT.csv and OUT.h5, defined in docs/benchmark.md.
std::vector<std::pair<std::string, double>> row_of(const Measurement& m, const References& r, const Roles& roles) {
  const auto workers = roles.worker_count();
  return {{"servers", roles.server_count()},
          {"workers", workers},
          {"parameters", static_cast<double>(m.parameters)},
          {"repeat", m.repeat},
          {"iterations_per_s", m.iterations_per_s()},
          {"gbytes_per_s", iteration_bytes(m, workers) * m.iterations_per_s() / kGiga},
          {"p50_us", m.percentile_s(50) * 1e6},
          {"p90_us", m.percentile_s(90) * 1e6},
          {"p99_us", m.percentile_s(99) * 1e6},
          {"put_us", r.put_s * 1e6},
          {"get_us", r.get_s * 1e6},
          {"put_get_all_us", r.put_get_all_s * 1e6},
          {"exchange_us", r.exchange_s * 1e6},
          {"pingpong_us", r.pingpong_s * 1e6},
          {"allreduce_us", r.allreduce_s * 1e6},
          {"local_update_us", r.local_update_s * 1e6},
          {"memcpy_one_gbs", r.memcpy_one_gbs},
          {"memcpy_all_gbs", r.memcpy_all_gbs},
          {"triad_one_gbs", r.triad_one_gbs},
          {"triad_all_gbs", r.triad_all_gbs}};
}

void append_row(std::vector<trace::Column>& columns, const std::vector<std::pair<std::string, double>>& row) {
  if (columns.empty())
    for (const auto& [name, value] : row) columns.emplace_back(name, std::vector<double>{});
  for (std::size_t k = 0; k < row.size(); ++k) columns[k].second.push_back(row[k].second);
}

void save(const std::string& out, const std::vector<trace::Column>& columns, const BenchConfig& config) {
  std::ofstream csv(out + ".csv");
  for (std::size_t k = 0; k < columns.size(); ++k) csv << (k > 0 ? "," : "") << columns[k].first;
  for (std::size_t row = 0; row < columns.front().second.size(); ++row)
    for (std::size_t k = 0; k < columns.size(); ++k)
      csv << (k > 0 ? "," : "\n") << fmt::format("{}", columns[k].second[row]);
  csv << '\n';
  if (!csv.flush()) throw RunError(fmt::format("cannot write {}.csv; is its folder there and writable?", out));
  auto attributes = trace::provenance();
  attributes.emplace_back("sync", config.session.sync);
  attributes.emplace_back("transport", config.session.transport);
  trace::save_columns(out + ".h5", columns, attributes);
}

}  // namespace

int run_bench(const BenchConfig& config) {
  Roles roles;
  roles.job = Comm::duplicate(MPI_COMM_WORLD);
  split_roles(config.session.servers, parse_placement(config.session.placement), roles);
  const bool speaks = roles.role == Role::kWorker && roles.index == 0;
  const auto workers = roles.worker_count();
  if (speaks)
    fmt::print("fluentps-bench: {} servers, {} workers, sync {}\n", roles.server_count(), workers, config.session.sync);
  std::vector<trace::Column> columns;
  for (const auto parameters : config.sizes) {
    const int repeat = repeats(config, parameters, workers);
    References references;
    if (config.references) references = measure_references(roles, parameters, std::min(repeat, 200));
    const auto measured = measure_push_pull(config.session, parameters, repeat);
    if (!speaks) continue;
    print_measurement(measured, workers);
    if (config.references) print_references(measured, references, workers);
    append_row(columns, row_of(measured, references, roles));
    std::fflush(stdout);
  }
  if (speaks && !config.out.empty()) save(config.out, columns, config);
  return kExitDone;
}

}  // namespace fluentps::app
