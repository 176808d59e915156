#include "apps/train/progress.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace fluentps::app {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kBarPeriod_ns = kSecond / 10;
constexpr std::int64_t kLogPeriod_ns = 10 * kSecond;
constexpr double kSmoothing = 0.05;
constexpr int kNarrowestBar = 8;
constexpr int kWidestBar = 30;

std::string standard_output_of(const std::string& process) {
  std::array<char, 4096> target{};
  const auto length = ::readlink(fmt::format("/proc/{}/fd/1", process).c_str(), target.data(), target.size() - 1);
  return length > 0 ? std::string(target.data(), static_cast<std::size_t>(length)) : "";
}

bool is_terminal_device(const std::string& path) {
  return path.rfind("/dev/pts/", 0) == 0 || path.rfind("/dev/tty", 0) == 0;
}

bool launched_by_mpirun() { return std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr; }

}  // namespace

Terminal find_terminal() {
  const auto path = standard_output_of(launched_by_mpirun() ? std::to_string(::getppid()) : "self");
  Terminal terminal;
  terminal.present = is_terminal_device(path);
  if (!terminal.present) return terminal;
  const int file = ::open(path.c_str(), O_RDONLY | O_NOCTTY | O_CLOEXEC);
  winsize size{};
  if (file >= 0) {
    if (::ioctl(file, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) terminal.columns = size.ws_col;
    ::close(file);
  }
  return terminal;
}

Progress::Progress(Iteration iterations, const Terminal& terminal, Clock& clock)
    : iterations_(iterations),
      terminal_(terminal),
      clock_(clock),
      period_ns_(terminal.present ? kBarPeriod_ns : kLogPeriod_ns),
      start_ns_(clock.now_ns()),
      last_ns_(start_ns_) {}

std::string Progress::numbers(const train::IterationReport& report, double per_second) const {
  auto text =
      fmt::format("{}/{} {:.1f} it/s loss {:.3f}", report.iteration + 1, iterations_, per_second, smoothed_loss_);
  if (evaluation_ && std::isfinite(evaluation_->accuracy)) text += fmt::format(" acc {:.3f}", evaluation_->accuracy);
  text += fmt::format(" DPRs {} staleness {}", report.transfer.delayed_total, report.transfer.staleness);
  return text;
}

void Progress::on_iteration(const train::IterationReport& report) {
  const bool first = last_iteration_ < 0;
  if (first) last_iteration_ = report.iteration;
  smoothed_loss_ = first ? report.loss : smoothed_loss_ + kSmoothing * (report.loss - smoothed_loss_);
  const bool last = report.iteration + 1 == iterations_;
  if (report.now_ns - last_ns_ < period_ns_ && !(last && terminal_.present)) return;
  const double elapsed_s = static_cast<double>(std::max<std::int64_t>(report.now_ns - last_ns_, 1)) * 1e-9;
  const double per_second = static_cast<double>(report.iteration + 1 - last_iteration_) / elapsed_s;
  last_ns_ = report.now_ns;
  last_iteration_ = report.iteration + 1;
  if (terminal_.present) {
    draw_bar(report, per_second);
    return;
  }
  fmt::print("[{:6.1f} s] {}\n", static_cast<double>(report.now_ns - start_ns_) * 1e-9, numbers(report, per_second));
  std::fflush(stdout);
}

/// The bar takes what the numbers leave; on a narrow terminal the numbers are cut rather than wrapped.
void Progress::draw_bar(const train::IterationReport& report, double per_second) {
  auto text = numbers(report, per_second);
  const int room = terminal_.columns - 1;
  const int width = std::min(kWidestBar, room - static_cast<int>(text.size()) - 3);
  std::string line;
  if (width >= kNarrowestBar) {
    const auto done = static_cast<int>(width * (report.iteration + 1) / std::max<Iteration>(iterations_, 1));
    line = fmt::format("[{:<{}}] ", std::string(static_cast<std::size_t>(done), '#'), width);
  }
  line = (line + text).substr(0, static_cast<std::size_t>(std::max(room, 1)));
  fmt::print("\r{:<{}}", line, room);
  std::fflush(stdout);
  bar_open_ = true;
}

void Progress::on_evaluation(Iteration iteration, const train::Evaluation& evaluation) {
  evaluation_ = evaluation;
  if (terminal_.present) return;
  fmt::print("[{:6.1f} s] iteration {}: test loss {:.4f}{}\n", static_cast<double>(clock_.now_ns() - start_ns_) * 1e-9,
             iteration, evaluation.loss,
             std::isfinite(evaluation.accuracy) ? fmt::format(", accuracy {:.4f}", evaluation.accuracy) : "");
  std::fflush(stdout);
}

void Progress::note(const std::string& text) {
  finish();
  fmt::print("{}\n", text);
  std::fflush(stdout);
}

void Progress::finish() {
  if (bar_open_) fmt::print("\n");
  bar_open_ = false;
}

}  // namespace fluentps::app
