#include "apps/train/config.hpp"

#include <fmt/format.h>

#include <boost/program_options.hpp>
#include <sstream>

#include "apps/train/ini_file.hpp"
#include "fluentps/error.hpp"
#include "net/groups.hpp"
#include "shard/shard_map.hpp"
#include "sync/controller.hpp"
#include "text/words.hpp"
#include "train/batches.hpp"

namespace fluentps::app {
namespace {

namespace po = boost::program_options;

constexpr unsigned kHelpColumns = 100;

/// An option whose default is what the struct holds.
template <typename T>
po::typed_value<T>* field(T& target) {
  return po::value<T>(&target)->default_value(target);
}
po::typed_value<bool>* flag(bool& target) {
  return po::value<bool>(&target)->default_value(target)->implicit_value(true);
}

// clang-format off: a table, an option a line
po::options_description role_options(SessionOptions& s) {
  po::options_description group("Roles", kHelpColumns);
  group.add_options()("servers", field(s.servers),
                      "ranks that become servers; FLUENTPS_ROLE=server|worker of a rank wins")(
      "placement", field(s.placement), "where they sit: spread over the nodes, first or last ranks")(
      "local-group", field(s.local_group),
      "workers that push and pull as one: none; node: those of a node; size=K: K of them (docs/transports.md)")(
      "slicing", field(s.slicing), "how parameters are cut over servers: eps (balanced), tensor, range (PS-Lite's)");
  return group;
}

po::options_description work_options(Config& c) {
  po::options_description group("Work load", kHelpColumns);
  group.add_options()("model", field(c.problem.model),
                      "softmax, mlp, lenet, cifar-quick, resnet20|32|44|56|110, vgg16, torchscript:FILE, "
                      "quadratic, synthetic:params=N,compute_ms=T (docs/models.md)")(
      "dataset", field(c.problem.dataset), "fashion-mnist, mnist, cifar10, cifar100, synthetic")(
      "data", field(c.problem.data), "folder of the data set; empty: where its Debian package puts it")(
      "augment", field(c.problem.augment),
      "training images at random: none, flip, crop (4 pixels), flip+crop; auto: flip for cifar")(
      "batch-size", field(c.problem.batch_size), "images per worker and batch")(
      "grad-accumulate", field(c.trainer.grad_accumulate), "batches per iteration, whose gradients are averaged")(
      "global-batch", field(c.global_batch),
      "images of all workers in one iteration; instead of --batch-size, 0: not used")(
      "iterations", field(c.iterations_text), "per worker; a list such as 10,13 gives worker 0 ten and the others 13")(
      "epochs", field(c.epochs), "passes over the training data instead of --iterations, 0: not used")(
      "eval-every", field(c.trainer.eval_every), "worker 0 evaluates after so many iterations; 0: only at the end")(
      "eval-images", field(c.problem.evaluation_limit), "test images used for that, 0: all")(
      "seed", field(c.session.seed), "of weights, data order, stragglers and the coin")(
      "save-weights", field(c.save_weights), "write the final weights to this HDF5 file, a data set per tensor");
  return group;
}

po::options_description optimizer_options(Config& c) {
  auto& t = c.trainer;
  po::options_description group("Optimizer", kHelpColumns);
  group.add_options()("optimizer", field(t.rule.name), "sgd, momentum, nesterov, adam, lars")(
      "optimizer-at", field(c.optimizer_at),
      "worker (it pushes its step, the servers add step/N), or server (one step per "
      "aggregate of gradients)")("lr", field(t.schedule.lr), "learning rate")(
      "clip-norm", field(t.clip_norm), "a worker's gradient that is longer is scaled down to this norm; 0: none is")(
      "momentum", field(t.rule.momentum), "of momentum, nesterov and lars")("weight-decay", field(t.rule.weight_decay),
                                                                            "L2 penalty added to the gradient")(
      "trust-ratio", field(t.rule.trust_ratio), "of lars")(
      "lr-schedule", field(t.schedule.spec), "constant, multistep:at=32000+48000,factor=0.1, poly:power=2, cosine")(
      "warmup", field(t.schedule.warmup), "iterations=500, with k=8 (from lr/k) or from=0.01; empty: none")(
      "nonfinite", field(c.nonfinite),
      "a gradient or loss that is not finite: abort the run, or skip (push zeros, count it)")(
      "compute-model", field(t.compute_model),
      "how long computing takes at least: constant:ms=30, normal:mean=30,sdev=5, or "
      "trace:RUN, drawn from that run; on a simulated cluster: exactly")(
      "straggler", field(t.straggler), "every=8,mean_ms=30,sdev_ms=10 or worker=0,factor=20; several with ;");
  return group;
}

po::options_description sync_options(SessionOptions& s) {
  po::options_description group("Synchronization (docs/sync-models.md, --list-sync)", kHelpColumns);
  group.add_options()("sync", field(s.sync),
                      "model, per server and from an iteration on: \"ssp:s=3; server1=bsp; @2000 asp\"")(
      "release", field(s.release),
      "of delayed pulls: soft (condition holds again) or lazy (all pushed that iteration)")(
      "coordination", field(s.coordination), "per-server, or central: a scheduler's global barrier as in PS-Lite")(
      "pslite-keys", flag(s.pslite_keys),
      "move a 64-bit key with every float32, as the published PS-Lite baseline does")(
      "coin", field(s.coin), "of pssp: shared by all servers, or per-server")(
      "staleness-scale", field(s.staleness_scale), "of late gradients: none, inverse, dynsgd")(
      "fastest", flag(s.only_fastest), "only the fastest worker may be delayed")(
      "join", flag(s.join), "a pull is also delayed where another one waits at the same iteration");
  return group;
}

po::options_description transport_options(SessionOptions& s) {
  po::options_description group("Transport", kHelpColumns);
  group.add_options()("transport", field(s.transport),
                      "auto (self-test, then rma or p2p), rma (one-sided), p2p (two-sided)")(
      "chunk-kib", field(s.chunk_kib),
      "of one transfer; smaller overlaps more, larger costs fewer messages; 0: a 16th of a shard, 64 to 256 on one "
      "node, 256 to 1024 between nodes, over p2p 64 to 1024")(  //
      "ring", field(s.ring),
      "chunks in flight per worker and server; a server holds workers x ring chunks; 0: 2 on one node, else 4")(
      "wire", field(s.wire), "how numbers travel: fp32, bf16, fp16 (half the bytes); servers keep float32")(
      "gpu-transfer", field(s.gpu_transfer),
      "off; or shards on the servers' GPUs, a GPU a rank: direct (MPI moves device memory), staged (through the host), "
      "auto (direct where a self-test passes); needs make CUDA=1 (docs/gpu.md)")(
      "wait", field(s.wait), "auto, spin (lowest latency), yield, sleep (gives the core away)")(
      "stall-s", field(s.stall_s), "report who waits for whom after so long without a message")(
      "abort-s", field(s.abort_s), "end the run after so long without a message");
  return group;
}

po::options_description output_options(Config& c) {
  po::options_description group("Output", kHelpColumns);
  group.add_options()("out", field(c.session.out), "each run gets its own folder in here; empty: no trace")(
      "run-id", field(c.session.run_id),
      "name of that folder; empty: from date, time and model. Never reused: -r1, -r2 ...")(
      "trace-flush-s", field(c.session.trace_flush_s), "trace rows older than this are on disk");
  return group;
}

po::options_description checkpoint_options(Config& c) {
  po::options_description group("Checkpoints (docs/checkpoints.md; SIGUSR1: write one and end)", kHelpColumns);
  group.add_options()("checkpoint-every", field(c.checkpoint_every),
                      "iterations; all workers meet then. 0: only on SIGUSR1")(
      "checkpoint-dir", field(c.session.checkpoint_dir), "seen by all ranks; empty: checkpoints, in the run's folder")(
      "keep-checkpoints", field(c.session.keep_checkpoints), "older ones are removed; 0: none is")(
      "resume", field(c.session.resume), "go on from this checkpoint, or the newest of this folder or run");
  return group;
}

po::options_description general_options(Config& c) {
  po::options_description group("General", kHelpColumns);
  group.add_options()("help,h", po::bool_switch(&c.help), "this text")(
      "preflight-only", po::bool_switch(&c.preflight_only),
      "check roles, data, memory and transport on all ranks, report, and end")("version", po::bool_switch(&c.version),
                                                                               "version and libraries")(
      "check-config", po::bool_switch(&c.check_config),
      "check the options, print them all as a file for --config, and end")(
      "list-sync", po::bool_switch(&c.list_sync), "the synchronization models, their conditions and sources")(
      "preset", po::value<std::string>(),
      "pslite-published or pslite-fair: options of a baseline; all others win over them")(
      "config", po::value<std::vector<std::string>>()->composing(),
      "ini file; repeatable, later ones win, the command line wins over all");
  return group;
}

// clang-format on

po::options_description run_options(Config& c) {
  po::options_description all(kHelpColumns);
  all.add(role_options(c.session))
      .add(work_options(c))
      .add(optimizer_options(c))
      .add(sync_options(c.session))
      .add(transport_options(c.session))
      .add(output_options(c))
      .add(checkpoint_options(c));
  return all;
}

std::string nearest_option(const std::string& name, const po::options_description& options) {
  std::vector<std::string> names;
  for (const auto& each : options.options()) names.push_back(each->long_name());
  return nearest_name(name, names);
}

/// Boost's texts, with the option and the value that was found.
[[noreturn]] void refuse(const po::error& error, const po::options_description& options) {
  if (const auto* unknown = dynamic_cast<const po::unknown_option*>(&error))
    throw UsageError(fmt::format("unknown option '{}'; did you mean --{}? See --help", unknown->get_option_name(),
                                 nearest_option(unknown->get_option_name(), options)));
  throw UsageError(fmt::format("{}; see --help", error.what()));
}

/// Boost reads "-1" as 4294967295 for an unsigned option.
void refuse_negative(const po::parsed_options& parsed, const std::string& where) {
  for (const auto& each : parsed.options) {
    const auto* option = parsed.description->find_nothrow(each.string_key, false);
    boost::any fallback;
    if (option == nullptr || each.value.empty() || !option->semantic()->apply_default(fallback)) continue;
    const bool is_unsigned = fallback.type() == typeid(std::uint32_t) || fallback.type() == typeid(std::uint64_t);
    if (is_unsigned && each.value.front().rfind('-', 0) == 0)
      throw UsageError(fmt::format("{}--{} is {}; it must be 0 or more", where, each.string_key, each.value.front()));
  }
}

void store_file(const std::string& path, const po::options_description& options, po::variables_map& values) {
  po::parsed_options parsed(&options);
  for (const auto& entry : read_ini(path)) {
    if (options.find_nothrow(entry.key, false) == nullptr)
      throw UsageError(fmt::format("{}:{}: unknown option '{}'; did you mean '{}'?", path, entry.line, entry.key,
                                   nearest_option(entry.key, options)));
    po::variables_map check;
    po::parsed_options single(&options);
    single.options.emplace_back(entry.key, std::vector<std::string>{entry.value});
    refuse_negative(single, fmt::format("{}:{}: ", path, entry.line));
    try {
      po::store(single, check);
    } catch (const po::error& error) {
      throw UsageError(fmt::format("{}:{}: {}", path, entry.line, error.what()));
    }
    parsed.options.push_back(single.options.front());
  }
  po::store(parsed, values);
}

/// The two baselines (docs/sync-models.md). What the command line or a file says wins.
void store_preset(const std::string& name, const po::options_description& options, po::variables_map& values) {
  std::vector<std::pair<std::string, std::string>> settings = {{"sync", "bsp"}, {"coordination", "central"}};
  if (name == "pslite-published") {
    settings.insert(settings.end(), {{"slicing", "range"}, {"pslite-keys", "true"}, {"transport", "rma"}});
  } else if (name == "pslite-fair") {
    settings.emplace_back("slicing", "eps");
  } else {
    throw UsageError(fmt::format("unknown preset '{}'; use pslite-published or pslite-fair", name));
  }
  po::parsed_options parsed(&options);
  for (const auto& [key, value] : settings) parsed.options.emplace_back(key, std::vector<std::string>{value});
  po::store(parsed, values);
}

std::string value_text(const boost::any& value) {
  if (const auto* text = boost::any_cast<std::string>(&value)) return *text;
  if (const auto* number = boost::any_cast<double>(&value)) return fmt::format("{}", *number);
  if (const auto* yes = boost::any_cast<bool>(&value)) return *yes ? "true" : "false";
  if (const auto* count = boost::any_cast<std::uint32_t>(&value)) return std::to_string(*count);
  if (const auto* count = boost::any_cast<std::uint64_t>(&value)) return std::to_string(*count);
  if (const auto* count = boost::any_cast<std::int64_t>(&value)) return std::to_string(*count);
  throw std::logic_error("an option has a type that cannot be dumped");
}

std::string dump(const po::options_description& options, const po::variables_map& values) {
  std::string text;
  for (const auto& each : options.options())
    text += fmt::format("{} = {}\n", each->long_name(), value_text(values[each->long_name()].value()));
  return text;
}

std::vector<Iteration> parse_iterations(const std::string& text) {
  std::vector<Iteration> result;
  std::istringstream in(text);
  for (std::string item; std::getline(in, item, ',');) {
    const auto number = parse_integer(item);
    if (!number || *number < 1 || *number > 0xFFFFFFFFLL)
      throw UsageError(fmt::format("--iterations '{}': '{}' is not a whole number of 1 or more", text, item));
    result.push_back(*number);
  }
  if (result.empty()) throw UsageError("--iterations is empty; give a number, or one per worker such as 10,13");
  return result;
}

/// What follows from several options, or needs more than a type.
void finish(Config& config) {
  config.problem.seed = config.trainer.seed = config.session.seed;
  config.iterations = parse_iterations(config.iterations_text);
  if (config.nonfinite != "abort" && config.nonfinite != "skip")
    throw UsageError(fmt::format("unknown --nonfinite '{}'; use abort or skip", config.nonfinite));
  config.trainer.skip_nonfinite = config.nonfinite == "skip";
  if (config.optimizer_at != "worker" && config.optimizer_at != "server")
    throw UsageError(fmt::format("unknown --optimizer-at '{}'; use worker or server", config.optimizer_at));
  config.trainer.optimizer_at_server = config.optimizer_at == "server";
  if (config.trainer.optimizer_at_server) config.session.server_optimizer = config.trainer.rule;
  if (config.checkpoint_every < 0)
    throw UsageError(fmt::format("--checkpoint-every is {}; it must be 0 or more", config.checkpoint_every));
  if (config.checkpoint_every > 0 && config.session.out.empty() && config.session.checkpoint_dir.empty())
    throw UsageError("--checkpoint-every without --out needs --checkpoint-dir, a folder for the checkpoints");
  if (config.checkpoint_every > 0 && config.iterations.size() > 1)
    throw UsageError(
        fmt::format("--checkpoint-every needs the same number of iterations on all workers, not --iterations {}",
                    config.iterations_text));
  if (config.epochs < 0) throw UsageError(fmt::format("--epochs is {}; it must be 0 or more", config.epochs));
  if (config.trainer.eval_every < 0)
    throw UsageError(fmt::format("--eval-every is {}; it must be 0 or more", config.trainer.eval_every));
}

}  // namespace

Config parse_config(int argc, const char* const* argv) {
  Config config;
  config.session.out = "results";
  auto options = run_options(config);
  auto visible = options;
  visible.add(general_options(config));
  po::variables_map values;
  try {
    const auto parsed = po::command_line_parser(argc, argv)
                            .options(visible)
                            .positional({})
                            .style(po::command_line_style::unix_style & ~po::command_line_style::allow_guessing)
                            .run();
    refuse_negative(parsed, "");
    po::store(parsed, values);
    if (values.count("config") > 0) {
      const auto& files = values["config"].as<std::vector<std::string>>();
      for (auto file = files.rbegin(); file != files.rend(); ++file) store_file(*file, options, values);
    }
    if (values.count("preset") > 0) store_preset(values["preset"].as<std::string>(), options, values);
    po::notify(values);
  } catch (const po::error& error) {
    refuse(error, visible);
  }
  if (config.help || config.list_sync || config.version) return config;
  finish(config);
  config.effective = dump(options, values);
  return config;
}

void check_config(const Config& config, std::uint32_t workers) {
  const SyncPlan plan(config.session.sync, workers, std::max(1U, config.session.servers));
  (void)make_update_rule(config.trainer.rule, 0, {});
  auto schedule = config.trainer.schedule;
  schedule.iterations = config.iterations.front();
  schedule.workers = workers;
  (void)make_schedule(schedule);
  (void)train::parse_augmentation(config.problem.augment, config.problem.dataset);
  (void)parse_release(config.session.release);
  (void)parse_slicing(config.session.slicing);
  (void)parse_group_rule(config.session.local_group);
}

std::string help_text() {
  Config config;
  config.session.out = "results";
  auto options = run_options(config);
  options.add(general_options(config));
  std::ostringstream out;
  out << "fluentps-train: trains a model on a parameter server over MPI one-sided communication\n"
         "usage: mpirun -np RANKS fluentps-train [options]\n"
      << options
      << "\nExit codes: 0 done, 2 usage or configuration, 3 run-time failure, 75 stopped by a signal, resumable\n";
  return out.str();
}

}  // namespace fluentps::app
