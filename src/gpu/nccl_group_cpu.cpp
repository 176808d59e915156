/// The build without NCCL.
#include "fluentps/error.hpp"
#include "gpu/nccl_group.hpp"

namespace fluentps {
namespace {

[[noreturn]] void refuse() {
  throw UsageError("this build has no NCCL, which the GPUs of a node need to reduce; build with make CUDA=1 NCCL=1");
}

}  // namespace

bool built_with_nccl() { return false; }

struct NcclGroup::Impl {};

NcclGroup::Id NcclGroup::make_id() { refuse(); }
NcclGroup::NcclGroup(const Id&, int, int, Device&) { refuse(); }
NcclGroup::~NcclGroup() = default;
NcclGroup::NcclGroup(NcclGroup&& other) noexcept = default;
NcclGroup& NcclGroup::operator=(NcclGroup&& other) noexcept = default;
void NcclGroup::reduce_to(int, std::span<float>) { refuse(); }
void NcclGroup::broadcast_from(int, std::span<float>) { refuse(); }
void NcclGroup::synchronize(std::chrono::milliseconds) { refuse(); }

}  // namespace fluentps
