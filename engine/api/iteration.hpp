// Implementation struct of IterativeSearch.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "api/convert.hpp"
#include "hmmjit/iteration.hpp"
#include "report/rounds.hpp"
#include "search/session.hpp"
#include "search/target_source.hpp"

namespace hmmjit::v0 {

struct IterativeSearchImpl {
  struct Query {
    std::unique_ptr<QueryRounds> rounds;
    std::optional<ModelResult> result;  // of the last round
  };
  RoundOptions options;  // the queries refer to it
  SearchOptions search;
  // Objects that `search` refers to.
  std::optional<Cache> cache;
  std::vector<std::int32_t> gpus;
  build::CalibrationOptions calibration;
  Targets targets;
  std::unique_ptr<TargetSource> kept;  // from the first round on
  hmmjit::Session session;
  std::vector<Query> queries;
  std::vector<Round> finished;  // not yet returned by next()
};

}  // namespace hmmjit::v0
