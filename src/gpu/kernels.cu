/// Two kernels: one passes any functor of shard/elementwise.hpp over arrays, one sums squares.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "gpu/cuda_error.hpp"
#include "gpu/kernels.hpp"

namespace fluentps {
namespace {

constexpr int kThreads = 256;
constexpr int kLanes = 4;  ///< elements of one access: 16 bytes of float32
/// Enough to fill the largest device several times; the rest is the grid-stride loop's.
constexpr std::int64_t kMostBlocks = 4096;

/// The type that makes an access of kLanes elements one instruction. A plain store of it is split by nvcc 13 where its
/// parts are computed one by one, so stores say what they want.
template <std::size_t bytes>
struct Access;
template <>
struct Access<16> {
  using Type = uint4;
};
template <>
struct Access<8> {
  using Type = uint2;
};

/// kLanes neighbouring elements: loaded with one instruction, changed, stored with one where they are an output. What
/// is not read before it is overwritten is not loaded: the compiler drops it.
template <typename T>
class Pack {
 public:
  __device__ explicit Pack(T* from)
      : from_(from), lanes_(std::bit_cast<Lanes>(*reinterpret_cast<const Vector*>(from))) {}
  __device__ T& at(int k) { return lanes_.values[k]; }
  __device__ void store() {
    if constexpr (!std::is_const_v<T>) __stwb(reinterpret_cast<Vector*>(from_), std::bit_cast<Vector>(lanes_));
  }

 private:
  using Vector = typename Access<kLanes * sizeof(T)>::Type;
  struct Lanes {
    std::remove_const_t<T> values[kLanes];
  };
  T* from_;
  Lanes lanes_;
};

template <typename F, typename... P>
__device__ void pass_over_packs(const F& f, P&&... packs) {
#pragma unroll
  for (int k = 0; k < kLanes; ++k) f(packs.at(k)...);
  (packs.store(), ...);
}

/// Elements [0, head) one by one, then `packs` packs, then the tail one by one.
template <typename F, typename... T>
__global__ void __launch_bounds__(kThreads)
    pass_kernel(F f, std::int64_t n, int head, std::int64_t packs, T*... arrays) {
  const std::int64_t first = blockIdx.x * static_cast<std::int64_t>(kThreads) + threadIdx.x;
  const std::int64_t stride = gridDim.x * static_cast<std::int64_t>(kThreads);
  for (std::int64_t p = first; p < packs; p += stride) pass_over_packs(f, Pack<T>(arrays + head + p * kLanes)...);
  const std::int64_t singles = n - packs * kLanes;
  for (std::int64_t s = first; s < singles; s += stride) {
    const std::int64_t j = s < head ? s : s + packs * kLanes;
    f(arrays[j]...);
  }
}

/// Elements before the first that is aligned for a pack; kLanes where the pointer can never be.
template <typename T>
int misalignment(const T* array) {
  const auto bytes = reinterpret_cast<std::uintptr_t>(array);
  if (bytes % sizeof(T) != 0) return kLanes;
  return static_cast<int>((kLanes - bytes / sizeof(T) % kLanes) % kLanes);
}

template <typename F, typename... T>
void launch(const PassOf<F, T...>& pass, cudaStream_t stream) {
  if (pass.n == 0) return;
  std::apply(
      [&](auto* first, auto*... rest) {
        const int wanted = misalignment(first);
        const bool alike = wanted < kLanes && ((misalignment(rest) == wanted) && ...);
        const int head = alike ? static_cast<int>(std::min<std::int64_t>(wanted, pass.n)) : 0;
        const std::int64_t packs = alike ? (pass.n - head) / kLanes : 0;
        const std::int64_t work = std::max(packs, pass.n - packs * kLanes);
        const auto blocks = static_cast<unsigned>(std::min(kMostBlocks, (work + kThreads - 1) / kThreads));
        pass_kernel<F, T...><<<blocks, kThreads, 0, stream>>>(pass.f, pass.n, head, packs, first, rest...);
      },
      pass.arrays);
  FLUENTPS_CUDA(cudaPeekAtLastError());
}

/// The sum over a block, on its first thread. A tree of fixed shape.
__device__ double block_sum(double own) {
  __shared__ double sums[kThreads];
  sums[threadIdx.x] = own;
  __syncthreads();
  for (int width = kThreads / 2; width > 0; width /= 2) {
    if (threadIdx.x < width) sums[threadIdx.x] += sums[threadIdx.x + width];
    __syncthreads();
  }
  return sums[0];
}

__global__ void __launch_bounds__(kThreads)
    square_kernel(const float* values, std::int64_t n, int head, std::int64_t packs, double* partial) {
  const elementwise::Square square;
  const std::int64_t first = blockIdx.x * static_cast<std::int64_t>(kThreads) + threadIdx.x;
  const std::int64_t stride = gridDim.x * static_cast<std::int64_t>(kThreads);
  double sum = 0;
  for (std::int64_t p = first; p < packs; p += stride) {
    Pack<const float> pack(values + head + p * kLanes);
#pragma unroll
    for (int k = 0; k < kLanes; ++k) sum += square(pack.at(k));
  }
  const std::int64_t singles = n - packs * kLanes;
  for (std::int64_t s = first; s < singles; s += stride) sum += square(values[s < head ? s : s + packs * kLanes]);
  sum = block_sum(sum);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(kThreads) sum_kernel(const double* partial, double* result) {
  static_assert(kNormBlocks == kThreads);
  const double sum = block_sum(partial[threadIdx.x]);
  if (threadIdx.x == 0) *result = sum;
}

}  // namespace

void launch_pass(const Pass& pass, cudaStream_t stream) {
  std::visit([stream](const auto& each) { launch(each, stream); }, pass);
}

void launch_squared_norm(std::span<const float> values, double* partial, double* result, cudaStream_t stream) {
  const auto n = static_cast<std::int64_t>(values.size());
  const int head = static_cast<int>(std::min<std::int64_t>(misalignment(values.data()), n));
  square_kernel<<<kNormBlocks, kThreads, 0, stream>>>(values.data(), n, head, (n - head) / kLanes, partial);
  FLUENTPS_CUDA(cudaPeekAtLastError());
  sum_kernel<<<1, kThreads, 0, stream>>>(partial, result);
  FLUENTPS_CUDA(cudaPeekAtLastError());
}

}  // namespace fluentps
