/// The synchronization models written a second time, as plainly as the definitions: every condition is worked out from
/// scratch over all workers. Slow, and the measure for the controller.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "fluentps/types.hpp"

namespace fluentps::test {

/// A model and its numbers; `from` is the first iteration it rules.
struct Rule {
  Iteration from = 0;
  std::string_view kind;        ///< as in --sync; "stops": ssp whose clock stops at 20, to see a standstill reported
  Iteration s = 0;              ///< ssp, pssp, psp; the lower bound of dssp
  Iteration high = 0;           ///< dssp
  std::uint32_t n = 0;          ///< drop: M; psp: B
  double c = 0;                 ///< pssp
  double alpha = 0;             ///< pssp
  double fraction = 0;          ///< partial
  std::int64_t timeout_ns = 0;  ///< partial
};

enum class Answer { kNo, kYes, kEither };

class Reference {
 public:
  Reference(std::uint32_t workers, std::vector<Rule> rules)
      : rules_(std::move(rules)), progress_(workers, 0), active_(workers, true) {}

  /// Returns false when the push was late.
  bool push(std::uint32_t worker, std::int64_t now_ns) {
    const auto i = progress_[worker]++;
    if (i >= v_) {
      auto& iteration = iterations_[i];
      if (iteration.by.empty()) iteration.first_ns = now_ns;
      iteration.by.push_back(worker);
    }
    const bool in_time = i >= v_;
    advance(now_ns);
    return in_time;
  }
  void leave(std::uint32_t worker, std::int64_t now_ns) {
    active_[worker] = false;
    advance(now_ns);
  }
  void advance(std::int64_t now_ns) {
    while (iterations_.contains(v_) && complete(now_ns)) iterations_.erase(v_++);
  }

  Answer answer(Iteration i, double coin) const {
    const auto& rule = rule_at(i);
    if (i < v_ || rule.kind == "asp" || rule.kind == "softsync") return Answer::kYes;
    if (rule.kind == "bsp" || rule.kind == "drop" || rule.kind == "partial") return Answer::kNo;
    if (rule.kind == "psp") return sampled(rule, i);
    if (i < v_ + rule.s) return Answer::kYes;
    if (rule.kind == "ssp" || rule.kind == "stops") return Answer::kNo;
    if (rule.kind == "dssp") return i < v_ + rule.high ? Answer::kEither : Answer::kNo;
    const double pause = rule.c > 0 ? rule.c : rule.alpha / (1 + std::exp(static_cast<double>(rule.s - (i - v_))));
    return coin > pause ? Answer::kYes : Answer::kNo;
  }
  /// Whether a delayed pull goes.
  Answer release(Iteration i, bool lazy) const {
    const auto& rule = rule_at(i);
    if (i < v_) return Answer::kYes;
    if (lazy) return Answer::kNo;
    if (rule.kind == "psp") return sampled(rule, i);
    return i < v_ + rule.s ? Answer::kYes : Answer::kNo;
  }

  Iteration v() const { return v_; }
  Iteration progress(std::uint32_t worker) const { return progress_[worker]; }
  bool active(std::uint32_t worker) const { return active_[worker]; }
  std::uint32_t active_workers() const {
    return static_cast<std::uint32_t>(std::count(active_.begin(), active_.end(), true));
  }
  Iteration fastest() const {
    Iteration fastest = 0;
    for (std::size_t w = 0; w < progress_.size(); ++w)
      if (active_[w] || active_workers() == 0) fastest = std::max(fastest, progress_[w]);
    return fastest;
  }
  std::uint32_t count(Iteration i) const {
    const auto found = iterations_.find(i);
    return found == iterations_.end() ? 0 : static_cast<std::uint32_t>(found->second.by.size());
  }
  std::uint32_t active_count(Iteration i) const {
    const auto found = iterations_.find(i);
    std::uint32_t count = 0;
    if (found != iterations_.end())
      for (const auto worker : found->second.by) count += active_[worker] ? 1 : 0;
    return count;
  }
  /// Whether V moves when time passes, without any event.
  bool waits_for_time() const { return iterations_.contains(v_) && rule_at(v_).timeout_ns > 0; }
  Iteration largest_gap() const { return static_cast<Iteration>(iterations_.size()); }

 private:
  struct Pushes {
    std::vector<std::uint32_t> by;
    std::int64_t first_ns = 0;
  };

  const Rule& rule_at(Iteration i) const {
    const Rule* ruling = &rules_.front();
    for (const auto& rule : rules_)
      if (rule.from <= i) ruling = &rule;
    return *ruling;
  }

  bool complete(std::int64_t now_ns) const {
    const auto& rule = rule_at(v_);
    const auto& pushes = iterations_.at(v_);
    if (rule.kind == "stops" && v_ >= 20) return false;
    if (rule.kind == "drop") return pushes.by.size() >= std::min(rule.n, active_workers());
    if (rule.fraction > 0) return active_count(v_) >= rule.fraction * active_workers();
    if (rule.timeout_ns > 0 && now_ns >= pushes.first_ns + rule.timeout_ns) return true;
    for (std::size_t w = 0; w < progress_.size(); ++w)
      if (active_[w] && progress_[w] <= v_) return false;
    return true;
  }

  /// Which workers are sampled is not known here; certain only where none or all can be.
  Answer sampled(const Rule& rule, Iteration i) const {
    std::uint32_t good = 0;
    for (std::size_t w = 0; w < progress_.size(); ++w) good += !active_[w] || i < progress_[w] + rule.s ? 1 : 0;
    if (good == progress_.size()) return Answer::kYes;
    return good >= rule.n ? Answer::kEither : Answer::kNo;
  }

  std::vector<Rule> rules_;
  std::vector<Iteration> progress_;
  std::vector<bool> active_;
  std::map<Iteration, Pushes> iterations_;  ///< from V on
  Iteration v_ = 0;
};

}  // namespace fluentps::test
