/// One function per command.
#include "apps/trace/trace_app.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/program_options.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>

#include "fluentps/error.hpp"
#include "trace/chrome_export.hpp"
#include "trace/merge.hpp"
#include "trace/provenance.hpp"
#include "trace/reader.hpp"
#include "trace/summary.hpp"
#include "trace/verify.hpp"

namespace fluentps::app {
namespace {

namespace po = boost::program_options;
namespace fs = std::filesystem;

struct Options {
  std::string command;
  std::string run;
  std::string output;
  double every_s = 2;
  std::size_t lines = 50;
};

int info(const Options& options) {
  const auto run = trace::load_run(options.run, true);
  fmt::print("{}", trace::to_text(run, trace::summarize(run)));
  return kExitDone;
}

int merge(const Options& options) {
  fmt::print("{}\n", trace::merge(options.run));
  return kExitDone;
}

int recover(const Options& options) {
  const auto recovery = trace::recover(options.run);
  for (const auto& note : recovery.notes) fmt::print("{}\n", note);
  fmt::print("{}\n", recovery.merged);
  return kExitDone;
}

int export_events(const Options& options) {
  auto path = options.output;
  if (path.empty())
    path = fs::is_directory(options.run) ? (fs::path(options.run) / "trace.json").string() : options.run + ".json";
  trace::export_chrome(trace::load_run(options.run, true), path);
  fmt::print("{}  (open it in https://ui.perfetto.dev)\n", path);
  return kExitDone;
}

int verify(const Options& options) {
  const auto verification = trace::verify(trace::load_run(options.run, true));
  fmt::print("{}", trace::to_text(verification, options.lines));
  return verification.holds() ? kExitDone : kExitFailure;
}

int watch(const Options& options) {
  while (true) {
    const auto summary = trace::summarize(trace::load_run(options.run, true));
    fmt::print("{}\n", trace::to_line(summary));
    std::fflush(stdout);
    if (summary.done) return kExitDone;
    std::this_thread::sleep_for(std::chrono::duration<double>(options.every_s));
  }
}

struct Command {
  std::string_view name;
  std::string_view help;
  int (*run)(const Options&);
};
constexpr std::array<Command, 6> kCommands = {{
    {"info", "roles, iterations/s, where the time went, delayed pulls, staleness, accuracy; also of a live run", info},
    {"merge", "merge the rank files of a run's folder into run.h5", merge},
    {"recover", "after a crash: merge what was written and clear the marks of killed writers", recover},
    {"export", "Chrome/Perfetto events (JSON) into --output", export_events},
    {"verify", "prove that every pull kept its condition and every push was applied once; exit code 3 if not", verify},
    {"watch", "follow a live run, one line every --every seconds, until all ranks have closed", watch},
}};

std::string help_text(const po::options_description& described) {
  std::string text =
      "fluentps-trace COMMAND RUN [options]\nRUN is a folder below results/, a run.h5 or the file of one "
      "rank.\n\nCommands:\n";
  for (const auto& each : kCommands) text += fmt::format("  {:<8} {}\n", each.name, each.help);
  std::ostringstream options;
  options << described;
  return text + "\n" + options.str() +
         "\nExit: 0 done, 2 usage or unreadable trace, 3 verify found a violation, or writing failed.\n";
}

const Command& find_command(const std::string& name) {
  const auto found =
      std::find_if(kCommands.begin(), kCommands.end(), [&](const Command& each) { return each.name == name; });
  if (found != kCommands.end()) return *found;
  std::string names;
  for (const auto& each : kCommands) names += fmt::format("{}{}", names.empty() ? "" : ", ", each.name);
  throw UsageError(name.empty() ? fmt::format("no command given; use one of {} and then a run, or --help", names)
                                : fmt::format("unknown command '{}'; use one of {}", name, names));
}

/// Empty where help or version was asked for, and printed.
std::optional<Options> parse(int argc, char** argv) {
  Options options;
  po::options_description described("Options");
  described.add_options()("help,h", "this text")("version", "what this program was built from")                    //
      ("output,o", po::value(&options.output)->value_name("FILE"), "export: the file; default trace.json in RUN")  //
      ("every", po::value(&options.every_s)->value_name("S"), "watch: seconds between two lines (2)")              //
      ("lines", po::value(&options.lines)->value_name("N"), "verify: violations shown at most (50)");
  po::options_description all;
  all.add(described).add_options()("command", po::value(&options.command))("run", po::value(&options.run));
  po::positional_options_description positions;
  positions.add("command", 1).add("run", 1);
  po::variables_map given;
  try {
    po::store(po::command_line_parser(argc, argv).options(all).positional(positions).run(), given);
    po::notify(given);
  } catch (const po::error& error) {
    throw UsageError(fmt::format("{}; see fluentps-trace --help", error.what()));
  }
  if (given.count("help") > 0) fmt::print("{}", help_text(described));
  if (given.count("version") > 0) fmt::print("{}", trace::version_text());
  if (given.count("help") + given.count("version") > 0) return std::nullopt;
  if (!(options.every_s > 0)) throw UsageError(fmt::format("--every is {}; it must be more than 0", options.every_s));
  return options;
}

}  // namespace

int run_trace_command(int argc, char** argv) {
  const auto options = parse(argc, argv);
  if (!options) return kExitDone;
  const auto& command = find_command(options->command);
  if (options->run.empty())
    throw UsageError(fmt::format("{} needs a run: its folder below results/, or a trace file", command.name));
  return command.run(*options);
}

}  // namespace fluentps::app
