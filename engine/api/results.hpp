// Implementation struct of ModelResult: the internals' result and views of it.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "api/convert.hpp"
#include "hmmjit/search.hpp"
#include "search/search.hpp"

namespace hmmjit::v0 {

struct ModelResultImpl {
  hmmjit::ModelResult result;
  bool scan = false;  // of a sequence; hits are models
  // Views of `result`.
  ResultInfo info{};
  std::vector<Hit> hits;
  std::vector<Domain> domains;
};

ModelResult make_result(hmmjit::ModelResult result, bool scan = false);
/// Passes a result to the host's callback, or collects it if there is none.
Status deliver(ModelResult result, const SearchCallbacks& callbacks, HostCalls& host,
               std::vector<ModelResult>& results);
FilterCounts to_counts(const FilterCounters& counters);

/// Passes results to a function.
class FunctionSink final : public ResultSink {
 public:
  using Receive = std::function<Status(const hmmjit::ModelResult&)>;
  explicit FunctionSink(Receive receive) : receive_(std::move(receive)) {}
  Status receive(const hmmjit::ModelResult& result) override { return receive_(result); }

 private:
  Receive receive_;
};

}  // namespace hmmjit::v0
