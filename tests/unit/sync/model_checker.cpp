/// Random interleavings against the reference.
#include "model_checker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "heap.hpp"

namespace fluentps::test {
namespace {

struct Violation {
  std::string text;
};

[[noreturn]] void violated(const std::string& invariant, const std::string& found) {
  throw Violation{fmt::format("{}: {}", invariant, found)};
}

class Episode {
 public:
  Episode(const CheckOptions& options, std::uint64_t seed)
      : options_(options),
        random_(seed),
        workers_(2 + below(7)),
        lazy_(below(2) == 1),
        plan_(options.plan(workers_)),
        reference_(workers_, plan_.rules),
        subject_(options.make_subject({.workers = workers_,
                                       .release = lazy_ ? Release::kLazy : Release::kSoft,
                                       .seed = seed,
                                       .only_fastest = options.only_fastest,
                                       .join = options.join},
                                      plan_.sync)),
        speed_(workers_),
        pushed_(workers_, false),
        asked_(workers_) {
    for (auto& speed : speed_) speed = std::array{1U, 5U, 20U, 20U}[below(4)];
  }

  void run() {
    std::size_t heap_before = 0;
    for (int event = 0; event < options_.events_per_episode; ++event) {
      if (event == 500) heap_before = heap_bytes();
      now_ns_ += below(1'000'000);
      step();
      gap_ = std::max(gap_, reference_.largest_gap());
    }
    const auto heap_after = heap_bytes();
    const auto allowed = 8192 + 256 * workers_ + 256 * static_cast<std::size_t>(gap_);
    if (heap_after > heap_before + allowed)
      violated("memory",
               fmt::format("{} bytes more with {} workers and a gap of {}", heap_after - heap_before, workers_, gap_));
    everyone_leaves();
  }

 private:
  std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>(random_() % bound); }

  void step() {
    if (below(20) == 0) return tick();
    if (below(2000) == 0 && reference_.active_workers() > 1) return leave(any_active());
    const auto worker = runnable();
    if (!worker) return tick();
    pushed_[*worker] ? pull(*worker) : push(*worker);
  }

  std::uint32_t any_active() {
    for (;;)
      if (const auto worker = below(workers_); reference_.active(worker)) return worker;
  }

  /// One that neither waits nor has left, the faster the likelier.
  std::optional<std::uint32_t> runnable() {
    std::uint32_t total = 0;
    for (std::uint32_t w = 0; w < workers_; ++w) total += runs(w) ? speed_[w] : 0;
    if (total == 0) {
      if (!reference_.waits_for_time()) violated("progress", fmt::format("all wait at V = {}", reference_.v()));
      return std::nullopt;
    }
    auto pick = below(total);
    for (std::uint32_t w = 0;; ++w) {
      if (!runs(w)) continue;
      if (pick < speed_[w]) return w;
      pick -= speed_[w];
    }
  }
  bool runs(std::uint32_t worker) const { return reference_.active(worker) && !asked_[worker]; }

  void push(std::uint32_t worker) {
    const auto i = reference_.progress(worker);
    const bool in_time = subject_->push({worker}, i, now_ns_);
    if (in_time != reference_.push(worker, now_ns_))
      violated("late", fmt::format("push of worker {} at {}", worker, i));
    pushed_[worker] = true;
    after_event();
  }

  void pull(std::uint32_t worker) {
    const auto i = reference_.progress(worker) - 1;
    const auto expected = expected_answer(worker, i);
    const bool answered = subject_->pull({worker}, i, now_ns_);
    pushed_[worker] = false;
    asked_[worker] = Asked{.iteration = i, .delayed = !answered, .v_request = reference_.v()};
    if (answered && expected == Answer::kNo)
      violated("staleness", fmt::format("pull of worker {} at {} answered with V = {}", worker, i, reference_.v()));
    if (!answered && expected == Answer::kYes)
      violated("needless", fmt::format("pull of worker {} at {} delayed with V = {}", worker, i, reference_.v()));
    if (!answered) ++delayed_;
    after_event();
  }

  Answer expected_answer(std::uint32_t worker, Iteration i) const {
    if (i < reference_.v()) return Answer::kYes;
    if (options_.only_fastest && i + 1 < reference_.fastest()) return Answer::kYes;
    const auto waits_there = [&](const auto& asked) { return asked && asked->iteration == i; };
    if (options_.join && std::any_of(asked_.begin(), asked_.end(), waits_there)) return Answer::kNo;
    return reference_.answer(i, subject_->state().coin({worker}, i));
  }

  void leave(std::uint32_t worker) {
    subject_->leave({worker}, now_ns_);
    reference_.leave(worker, now_ns_);
    after_event();
  }

  void tick() {
    subject_->tick(now_ns_);
    reference_.advance(now_ns_);
    after_event();
  }

  void everyone_leaves() {
    while (reference_.active_workers() > 0) leave(any_active());
    for (std::uint32_t w = 0; w < workers_; ++w)
      if (asked_[w]) violated("stranded", fmt::format("worker {} still waits when all have left", w));
  }

  void after_event() {
    check_clocks();
    for (const auto& grant : subject_->take_grants()) check_grant(grant);
    check_waiting();
    if (subject_->delayed_pulls() != delayed_)
      violated("counts", fmt::format("{} delayed pulls, counted {}", delayed_, subject_->delayed_pulls()));
    if (reference_.waits_for_time() != subject_->has_deadline()) violated("clock", "the deadline");
  }

  void check_clocks() const {
    const auto& state = subject_->state();
    if (state.v() != reference_.v()) violated("clock", fmt::format("V is {}, must be {}", state.v(), reference_.v()));
    if (state.active_workers() != reference_.active_workers()) violated("clock", "the number of active workers");
    if (state.fastest() != reference_.fastest()) violated("clock", "the fastest");
    for (std::uint32_t w = 0; w < workers_; ++w)
      if (state.progress({w}) != reference_.progress(w)) violated("clock", fmt::format("the progress of worker {}", w));
    for (const auto i : {state.v() - 1, state.v(), state.v() + 1, state.fastest() - 1, state.fastest()})
      if (subject_->count(i) != reference_.count(i) || state.active_count(i) != reference_.active_count(i))
        violated("counts",
                 fmt::format("{} pushes of iteration {}, counted {}", reference_.count(i), i, subject_->count(i)));
  }

  void check_grant(const Grant& grant) {
    auto& asked = asked_[grant.worker.value];
    if (!asked || asked->iteration != grant.iteration || asked->delayed != grant.delayed ||
        asked->v_request != grant.v_request)
      violated("answers",
               fmt::format("worker {} at {} was answered but had not asked so", grant.worker.value, grant.iteration));
    if (grant.delayed && reference_.release(grant.iteration, lazy_) == Answer::kNo)
      violated("staleness", fmt::format("delayed pull of worker {} at {} released with V = {}", grant.worker.value,
                                        grant.iteration, reference_.v()));
    asked.reset();
  }

  void check_waiting() const {
    const auto waiting = subject_->waiting();
    std::size_t expected = 0;
    for (std::uint32_t w = 0; w < workers_; ++w) {
      if (!asked_[w]) continue;
      ++expected;
      const auto here = [&](const Grant& pull) {
        return pull.worker.value == w && pull.iteration == asked_[w]->iteration;
      };
      if (std::none_of(waiting.begin(), waiting.end(), here))
        violated("stranded", fmt::format("the pull of worker {} is neither answered nor waiting", w));
      // A joined pull waits for the one it joined.
      const bool may_wait = options_.join && asked_[w]->iteration >= reference_.v();
      if (!may_wait && reference_.release(asked_[w]->iteration, lazy_) == Answer::kYes)
        violated("stranded",
                 fmt::format("worker {} still waits at {} with V = {}", w, asked_[w]->iteration, reference_.v()));
    }
    if (waiting.size() != expected) violated("answers", "a pull waits that was answered");
  }

  struct Asked {
    Iteration iteration = 0;
    bool delayed = false;
    Iteration v_request = 0;
  };

  const CheckOptions& options_;
  std::mt19937_64 random_;
  std::uint32_t workers_;
  bool lazy_;
  CheckedPlan plan_;
  Reference reference_;
  std::unique_ptr<Subject> subject_;
  std::vector<std::uint32_t> speed_;
  std::vector<bool> pushed_;                 ///< has pushed and not yet pulled
  std::vector<std::optional<Asked>> asked_;  ///< by worker: the pull not yet answered
  std::uint64_t delayed_ = 0;
  std::int64_t now_ns_ = 0;
  Iteration gap_ = 0;
};

}  // namespace

std::string check(const CheckOptions& options) {
  for (int episode = 0; episode < options.episodes; ++episode) {
    const auto seed = options.seed * 1'000'003 + static_cast<std::uint64_t>(episode);
    try {
      Episode(options, seed).run();
    } catch (const Violation& violation) {
      return fmt::format("{} (episode {})", violation.text, episode);
    }
  }
  return "";
}

}  // namespace fluentps::test
