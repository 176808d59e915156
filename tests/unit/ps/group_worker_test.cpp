/// What a member of a local group hears and says while it meets the others; the exchange itself: tests/mpi.
#include "ps/group_worker.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <vector>

#include "fake_network.hpp"
#include "fluentps/error.hpp"

namespace fluentps::test {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

/// A group of three, of which this rank is one; what the others send is given beforehand.
class FakeGroup : public LocalGroup, public ControlPort {
 public:
  FakeGroup(std::uint32_t member, FakeClock& clock) : member_(member), clock_(clock) {}
  std::uint32_t member() const override { return member_; }
  std::uint32_t size() const override { return 3; }
  ControlPort& control() override { return *this; }
  void reduce(std::span<const float>, std::span<float>) override { ++collectives; }
  void broadcast(std::span<float>) override { ++collectives; }
  void send(std::uint32_t peer, const Header& header, std::span<const std::byte>) override {
    sent.emplace_back(peer, header);
  }
  std::optional<Message> receive(std::int64_t deadline_ns) override {
    if (coming.empty()) {
      clock_.now = deadline_ns;
      return std::nullopt;
    }
    const auto message = coming.front();
    coming.pop_front();
    return message;
  }

  std::vector<std::pair<std::uint32_t, Header>> sent;
  std::deque<Message> coming;
  int collectives = 0;

 private:
  std::uint32_t member_;
  FakeClock& clock_;
};

struct NoData : WorkerData {
  void put(ServerIndex, std::uint32_t, std::int64_t, std::span<const float>) override {}
  void complete_puts(ServerIndex) override {}
  bool puts_finished() override { return true; }
  void get(ServerIndex, std::int64_t, std::span<const std::span<float>>) override {}
  void complete_gets(ServerIndex) override {}
};

struct NoServer : ControlPort {
  void send(std::uint32_t, const Header& header, std::span<const std::byte>) override { sent.push_back(header.kind); }
  std::optional<Message> receive(std::int64_t) override { throw RunError("the server was asked"); }
  std::vector<MessageKind> sent;
};

/// The leader of the workers 4, 5 and 6.
class LeaderTest : public ::testing::Test {
 protected:
  static GroupOptions options() {
    return {.index = WorkerIndex{4},
            .workers = 9,
            .groups = 3,
            .members = {4, 5, 6},
            .parameters = 10,
            .abort_ns = 5 * kSecond};
  }
  static Message meet(std::uint32_t peer, std::uint32_t what, Iteration iteration, std::uint16_t flags = 0) {
    return {peer, {.kind = MessageKind::kMeet, .flags = flags, .slot = what, .iteration = iteration}, {}};
  }
  std::string refusal() {
    try {
      worker.leave();
    } catch (const RunError& error) {
      return error.what();
    }
    return "";
  }

  static constexpr std::uint32_t kPushPull = 3;
  static constexpr std::uint32_t kLeave = 4;
  FakeClock clock;
  ShardMap map{{{"a", {10}}}, 1, Slicing::kEps};
  NoServer server;
  NoData data;
  WorkerClient client{{.index = WorkerIndex{1}, .inline_data = {true}}, map, server, data, clock, nullptr};
  FakeGroup group{0, clock};
  GroupWorker worker{options(), group, &client, clock, nullptr};
};

TEST_F(LeaderTest, AnswersWhenAllAreThere) {
  // Receive: both others leave.
  // Expect: both hear that all are there, and the server that the group leaves.
  group.coming = {meet(2, kLeave, 0), meet(1, kLeave, 0)};
  EXPECT_EQ(refusal(), "");
  ASSERT_EQ(group.sent.size(), 2U);
  for (std::uint32_t k = 0; k < 2; ++k) {
    EXPECT_EQ(group.sent[k].first, k + 1);
    EXPECT_EQ(group.sent[k].second.kind, MessageKind::kMet);
  }
  EXPECT_EQ(server.sent, std::vector{MessageKind::kLeave});
}

TEST_F(LeaderTest, RefusesAMemberThatDoesSomethingElse) {
  // Receive: worker 6 pushes while the leader leaves.
  // Expect: both are named, and nobody goes on.
  group.coming = {meet(2, kPushPull, 0)};
  const auto text = refusal();
  EXPECT_NE(text.find("worker 6 pushes and pulls at iteration 0 while worker 4 of the same local group leaves"),
            std::string::npos)
      << text;
  EXPECT_TRUE(group.sent.empty());
}

TEST_F(LeaderTest, RefusesAMemberAtAnotherIteration) {
  group.coming = {meet(1, kLeave, 7)};
  const auto text = refusal();
  EXPECT_NE(text.find("worker 5 leaves at iteration 7"), std::string::npos) << text;
}

TEST_F(LeaderTest, NamesWhoIsMissingAndGivesUp) {
  // Receive: worker 6 only.
  // Expect: after abort_ns worker 5 is named, and 6 is not.
  group.coming = {meet(2, kLeave, 0)};
  ::testing::internal::CaptureStderr();
  const auto text = refusal();
  ::testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("not heard of: worker 5)"), std::string::npos) << text;
  EXPECT_GE(clock.now, 5 * kSecond);
  EXPECT_LT(clock.now, 6 * kSecond);
}

TEST_F(LeaderTest, TellsTheServerOfAMembersWishToStop) {
  group.coming = {meet(1, kLeave, 0, kStopWanted), meet(2, kLeave, 0, kStopWanted)};
  EXPECT_EQ(refusal(), "");
  EXPECT_EQ(server.sent, (std::vector{MessageKind::kStop, MessageKind::kLeave}));
}

TEST(GroupMember, WaitsForItsLeaderAndNamesIt) {
  FakeClock clock;
  FakeGroup group(1, clock);
  GroupWorker worker({.index = WorkerIndex{5},
                      .workers = 9,
                      .groups = 3,
                      .members = {4, 5, 6},
                      .parameters = 10,
                      .stall_ns = kSecond,
                      .abort_ns = 3 * kSecond},
                     group, nullptr, clock, nullptr);
  std::vector<float> w(10);
  ::testing::internal::CaptureStderr();
  std::string text;
  try {
    worker.initialize(w);
  } catch (const RunError& error) {
    text = error.what();
  }
  const auto reported = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("not heard of: worker 4, its leader"), std::string::npos) << text;
  EXPECT_NE(reported.find("stall: worker 5 has waited 1."), std::string::npos) << reported;
  EXPECT_EQ(group.collectives, 0) << "no collective begins before all are there";
}

}  // namespace
}  // namespace fluentps::test
