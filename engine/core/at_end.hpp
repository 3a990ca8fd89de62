// Runs a function at the end of a scope.
#pragma once

namespace hmmjit {

/// const AtEnd close{[&] { file.close(); }};
template <typename Function>
struct AtEnd {
  ~AtEnd() { function(); }
  Function function;
};
template <typename Function>
AtEnd(Function) -> AtEnd<Function>;

}  // namespace hmmjit
