/// A clock that only sleeping moves.
#pragma once

#include "fluentps/clock.hpp"

namespace fluentps::train {

class FakeClock : public Clock {
 public:
  std::int64_t now_ns() const override { return now_ns_; }
  void sleep_ns(std::int64_t duration_ns) override { now_ns_ += duration_ns; }

 private:
  std::int64_t now_ns_ = 0;
};

}  // namespace fluentps::train
