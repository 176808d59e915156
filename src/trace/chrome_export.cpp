/// Writes JSON line by line.
#include "trace/chrome_export.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "fluentps/error.hpp"
#include "trace/attributes.hpp"
#include "trace/replace_file.hpp"

namespace fluentps::trace {
namespace {

constexpr int kServerTracks = 1;  // first track of a worker's pulls; 0 are its iterations

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (static_cast<unsigned char>(c) < 0x20)
      result += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      result += c;
  }
  return result;
}

class Output {
 public:
  explicit Output(const std::string& path, const std::string& shown)
      : shown_(shown), file_(std::fopen(path.c_str(), "wb"), &std::fclose) {
    if (!file_) fail();
    line_ = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n";
  }
  /// `event` without braces; an event or a metadata record.
  void add(const std::string& event) {
    line_ += first_ ? "{" : ",\n{";
    first_ = false;
    line_ += event;
    line_ += '}';
    if (line_.size() > kBuffer_bytes) write();
  }
  void close() {
    line_ += "\n]}\n";
    write();
    if (std::fclose(file_.release()) != 0) fail();
  }

 private:
  static constexpr std::size_t kBuffer_bytes = 1U << 16;
  void write() {
    if (std::fwrite(line_.data(), 1, line_.size(), file_.get()) != line_.size()) fail();
    line_.clear();
  }
  [[noreturn]] void fail() const {
    throw RunError(fmt::format("{} cannot be written: {}", shown_, std::strerror(errno)));
  }

  std::string shown_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
  std::string line_;
  bool first_ = true;
};

class RankExport {
 public:
  RankExport(const RankData& rank, Output& output)
      : rank_(rank), output_(output), offset_ns_(number_of(rank.attributes, "clock_offset_ns")) {}

  void run() {
    output_.add(fmt::format(R"("ph":"M","name":"process_name","pid":{},"args":{{"name":"{} {} on {}"}})", rank_.rank,
                            rank_.server ? "server" : "worker", rank_.index,
                            escaped(value_of(rank_.attributes, "host", "?"))));
    output_.add(fmt::format(R"("ph":"M","name":"process_sort_index","pid":{},"args":{{"sort_index":{}}})", rank_.rank,
                            (rank_.server ? 0 : 1'000'000) + rank_.index));
    if (rank_.server)
      server();
    else
      worker();
  }

 private:
  double us(std::uint64_t time_ns) const {
    return (static_cast<double>(time_ns) - static_cast<double>(offset_ns_)) * 1e-3;
  }

  void name_track(std::uint32_t track, const std::string& name) {
    output_.add(fmt::format(R"("ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":"{}"}})", rank_.rank,
                            track, name));
  }
  void slice(std::uint32_t track, const char* name, std::uint64_t begin_ns, std::uint64_t end_ns,
             const std::string& args) {
    output_.add(fmt::format(R"("ph":"X","name":"{}","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{{{}}})", name,
                            rank_.rank, track, us(begin_ns),
                            static_cast<double>(std::max(end_ns, begin_ns) - begin_ns) * 1e-3, args));
  }

  void worker() {
    name_track(0, "iterations");
    for (const auto& row : rank_.iterations) {
      auto at_ns = row.begin_ns;
      const auto args = fmt::format(R"("iteration":{})", row.iteration);
      const auto part = [&](const char* name, std::uint64_t duration_ns) {
        if (duration_ns > 0) slice(0, name, at_ns, at_ns + duration_ns, args);
        at_ns += duration_ns;
      };
      part("compute", row.compute_ns);
      part("push", row.push_ns);
      part("wait", row.wait_ns);
      part("pull", row.pull_ns);
    }
    std::uint32_t tracks = 0;
    for (const auto& row : rank_.worker_pulls) {
      const auto args = fmt::format(R"("iteration":{},"v":{})", row.iteration, row.v);
      tracks = std::max(tracks, row.server + 1U);
      slice(kServerTracks + row.server, "wait for grant", row.request_ns, row.grant_ns, args);
      slice(kServerTracks + row.server, "get", row.grant_ns, row.done_ns, args);
    }
    for (std::uint32_t m = 0; m < tracks; ++m) name_track(kServerTracks + m, fmt::format("pulls of server {}", m));
    for (const auto& row : rank_.evaluations)
      output_.add(fmt::format(
          R"("ph":"i","s":"p","name":"evaluation","pid":{},"tid":0,"ts":{:.3f},"args":{{"iteration":{},"accuracy":{:.6f}}})",
          rank_.rank, us(row.time_ns), row.iteration, row.test_accuracy));
  }

  void server() {
    std::uint32_t tracks = 0;
    for (const auto& row : rank_.pushes) {
      tracks = std::max(tracks, row.worker + 1U);
      const auto args =
          fmt::format(R"("iteration":{},"staleness":{},"late":{})", row.iteration, row.staleness, row.late);
      const bool dropped = row.applied_ns == 0;
      slice(row.worker, dropped ? "dropped push" : "push", row.arrive_ns, dropped ? row.arrive_ns : row.applied_ns,
            args);
    }
    for (const auto& row : rank_.server_pulls) {
      tracks = std::max(tracks, row.worker + 1U);
      if (row.delayed != 0)
        slice(
            row.worker, "delayed pull", row.request_ns, row.answer_ns,
            fmt::format(R"("iteration":{},"v_request":{},"v_answer":{})", row.iteration, row.v_request, row.v_answer));
    }
    for (const auto& row : rank_.advances)
      output_.add(fmt::format(R"("ph":"C","name":"V","pid":{},"ts":{:.3f},"args":{{"V":{}}})", rank_.rank,
                              us(row.time_ns), row.v));
    const bool grouped = !value_of(rank_.attributes, "group_of_worker").empty();
    for (std::uint32_t w = 0; w < tracks; ++w) name_track(w, fmt::format("{} {}", grouped ? "group" : "worker", w));
  }

  const RankData& rank_;
  Output& output_;
  std::int64_t offset_ns_;
};

}  // namespace

void export_chrome(const RunData& run, const std::string& path) {
  replace_file(path, [&](const std::string& temporary) {
    Output output(temporary, path);
    for (const auto& rank : run.ranks) RankExport(rank, output).run();
    output.close();
  });
}

}  // namespace fluentps::trace
