/// A pass of one functor over arrays, as a value: what a ShardMemory runs wherever its arrays lie. Plain C++.
#pragma once

#include <cstdint>
#include <tuple>
#include <variant>

#include "shard/elementwise.hpp"

namespace fluentps {

/// f(arrays[0][j], arrays[1][j], ...) for all j < n, in no particular order.
template <typename F, typename... T>
struct PassOf {
  F f;
  std::tuple<T*...> arrays;
  std::int64_t n = 0;
};

using Half = std::uint16_t;
using Term = const float;
using Pass = std::variant<PassOf<elementwise::Store, float, const float>,                            //
                          PassOf<elementwise::Add, float, const float>,                              //
                          PassOf<elementwise::Apply, float, const float>,                            //
                          PassOf<elementwise::ApplySum, float, Term, Term>,                          //
                          PassOf<elementwise::ApplySum, float, Term, Term, Term>,                    //
                          PassOf<elementwise::ApplySum, float, Term, Term, Term, Term>,              //
                          PassOf<elementwise::ApplySum, float, Term, Term, Term, Term, Term>,        //
                          PassOf<elementwise::Fill, float>,                                          //
                          PassOf<elementwise::Scale, float>,                                         //
                          PassOf<elementwise::Sgd, float, const float, const float>,                 //
                          PassOf<elementwise::Momentum, float, float, const float, const float>,     //
                          PassOf<elementwise::Nesterov, float, float, const float, const float>,     //
                          PassOf<elementwise::Adam, float, float, float, const float, const float>,  //
                          PassOf<elementwise::Lars, float, float, const float, const float>,         //
                          PassOf<elementwise::ToBf16, Half, const float>,                            //
                          PassOf<elementwise::FromBf16, float, const Half>,                          //
                          PassOf<elementwise::ToFp16, Half, const float>,                            //
                          PassOf<elementwise::FromFp16, float, const Half>>;

/// Pass of `f` over n elements of `arrays`, which are in the order of f's arguments.
template <typename F, typename... T>
Pass make_pass(F f, std::size_t n, T*... arrays) {
  return PassOf<F, T...>{f, {arrays...}, static_cast<std::int64_t>(n)};
}

/// The pass as a loop on the host.
template <typename F, typename... T>
void run_on_host(const PassOf<F, T...>& pass) {
  const F f = pass.f;  // a local: an output might alias a member, which would forbid vector code
  const std::int64_t n = pass.n;
  std::apply(
      [&](T*... arrays) {
#pragma GCC ivdep
        for (std::int64_t j = 0; j < n; ++j) f(arrays[j]...);
      },
      pass.arrays);
}

}  // namespace fluentps
