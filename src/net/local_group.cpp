#include "net/local_group.hpp"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "net/control_channel.hpp"
#include "net/mpi_error.hpp"

namespace fluentps {
namespace {

constexpr std::size_t kLargestPiece = std::size_t{1} << 26;  // counts are int

std::vector<int> all_ranks(const Comm& comm) {
  std::vector<int> ranks(static_cast<std::size_t>(comm.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

class MpiGroup final : public LocalGroup {
 public:
  MpiGroup(Comm group, const Waiter& waiter, const Clock& clock)
      : comm_(std::move(group)),
        rank_(comm_.rank()),
        size_(comm_.size()),
        channel_(comm_.get(), all_ranks(comm_), waiter, clock) {}

  std::uint32_t member() const override { return static_cast<std::uint32_t>(rank_); }
  std::uint32_t size() const override { return static_cast<std::uint32_t>(size_); }
  ControlPort& control() override { return channel_; }

  void reduce(std::span<const float> values, std::span<float> sum) override {
    for (std::size_t at = 0; at < values.size(); at += kLargestPiece) {
      const auto count = static_cast<int>(std::min(kLargestPiece, values.size() - at));
      float* into = rank_ == 0 ? sum.data() + at : nullptr;
      FLUENTPS_MPI(MPI_Reduce(values.data() + at, into, count, MPI_FLOAT, MPI_SUM, 0, comm_.get()));
    }
  }

  void broadcast(std::span<float> values) override {
    for (std::size_t at = 0; at < values.size(); at += kLargestPiece)
      FLUENTPS_MPI(MPI_Bcast(values.data() + at, static_cast<int>(std::min(kLargestPiece, values.size() - at)),
                             MPI_FLOAT, 0, comm_.get()));
  }

 private:
  Comm comm_;
  int rank_;
  int size_;
  ControlChannel channel_;
};

}  // namespace

std::unique_ptr<LocalGroup> make_mpi_group(Comm group, const Waiter& waiter, const Clock& clock) {
  return std::make_unique<MpiGroup>(std::move(group), waiter, clock);
}

}  // namespace fluentps
