#include <fmt/format.h>
#include <nccl.h>

#include <cstring>
#include <exception>
#include <thread>
#include <utility>

#include "gpu/cuda_device.hpp"
#include "gpu/nccl_group.hpp"

namespace fluentps {
namespace {

void check(ncclResult_t result, ncclComm_t communicator, const char* call, const char* file, int line) {
  if (result == ncclSuccess) return;
  const char* detail = ncclGetLastError(communicator);
  throw NcclError(fmt::format("{} failed: {}{}{} at {}:{}", call, ncclGetErrorString(result),
                              detail != nullptr && *detail != '\0' ? "; " : "", detail != nullptr ? detail : "", file,
                              line));
}

#define FLUENTPS_NCCL(communicator, call) check((call), (communicator), #call, __FILE__, __LINE__)

}  // namespace

bool built_with_nccl() { return true; }

struct NcclGroup::Impl {
  CudaDevice& device;
  ncclComm_t communicator = nullptr;

  cudaStream_t stream() const { return device.stream(DeviceStream::kCompute).get(); }
  void abort() {
    if (communicator != nullptr) (void)ncclCommAbort(std::exchange(communicator, nullptr));
  }
  void require() const {
    if (communicator == nullptr) throw NcclError("the NCCL communicator has been ended after an error");
  }
};

NcclGroup::Id NcclGroup::make_id() {
  ncclUniqueId id;
  static_assert(sizeof(id.internal) == std::tuple_size_v<Id>);
  FLUENTPS_NCCL(nullptr, ncclGetUniqueId(&id));
  Id bytes;
  std::memcpy(bytes.data(), id.internal, bytes.size());
  return bytes;
}

NcclGroup::NcclGroup(const Id& id, int ranks, int rank, Device& device)
    : impl_(new Impl{dynamic_cast<CudaDevice&>(device)}) {
  ncclUniqueId own;
  std::memcpy(own.internal, id.data(), id.size());
  FLUENTPS_NCCL(nullptr, ncclCommInitRank(&impl_->communicator, ranks, own, rank));
}

NcclGroup::~NcclGroup() {
  if (!impl_ || impl_->communicator == nullptr) return;
  if (std::uncaught_exceptions() > 0)
    impl_->abort();
  else
    (void)ncclCommDestroy(impl_->communicator);
}
NcclGroup::NcclGroup(NcclGroup&& other) noexcept = default;
NcclGroup& NcclGroup::operator=(NcclGroup&& other) noexcept {
  std::swap(impl_, other.impl_);
  return *this;
}

void NcclGroup::reduce_to(int leader, std::span<float> values) {
  impl_->require();
  FLUENTPS_NCCL(impl_->communicator, ncclReduce(values.data(), values.data(), values.size(), ncclFloat32, ncclSum,
                                                leader, impl_->communicator, impl_->stream()));
}

void NcclGroup::broadcast_from(int leader, std::span<float> values) {
  impl_->require();
  FLUENTPS_NCCL(impl_->communicator, ncclBroadcast(values.data(), values.data(), values.size(), ncclFloat32, leader,
                                                   impl_->communicator, impl_->stream()));
}

/// Polls, since a stream whose peer has died never ends.
void NcclGroup::synchronize(std::chrono::milliseconds limit) {
  impl_->require();
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (true) {
    ncclResult_t state = ncclSuccess;
    FLUENTPS_NCCL(impl_->communicator, ncclCommGetAsyncError(impl_->communicator, &state));
    if (state != ncclSuccess && state != ncclInProgress) {
      impl_->abort();
      throw NcclError(fmt::format("NCCL failed while it ran: {}", ncclGetErrorString(state)));
    }
    const auto queried = cudaStreamQuery(impl_->stream());
    if (queried == cudaSuccess) return;
    if (queried != cudaErrorNotReady) FLUENTPS_CUDA(queried);
    if (std::chrono::steady_clock::now() > deadline) {
      impl_->abort();
      throw NcclError(fmt::format("NCCL has not ended after {} ms; another rank may have died", limit.count()));
    }
    std::this_thread::yield();
  }
}

}  // namespace fluentps
