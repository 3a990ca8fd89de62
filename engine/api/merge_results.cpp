// Joins results against several sets of targets.
#include "api/handles.hpp"
#include "api/results.hpp"
#include "hmmjit/search.hpp"

namespace hmmjit::v0 {

ModelResult merge_results(const std::vector<ModelResult>& results,
                          const hmmjit_search_options& options) {
  return guarded([&] {
    if (results.empty()) throw Error(ErrorCode::kUsage, "no result is given");
    check_options(options);
    if (options.cutoffs != HMMJIT_CUT_NONE)
      throw Error(ErrorCode::kUsage, "results by cutoffs of their models cannot be merged",
                  "cutoffs", "search parts of one database, and merge these");
    ModelThresholds thresholds;
    thresholds.rules = to_options(options).thresholds;
    hmmjit::ModelResult merged = results.front().impl()->result;
    merged.hits = {};
    merged.seconds = merged.cpu_seconds = 0;
    merged.prepared = nullptr;
    FilterCounters counters;
    std::vector<hmmjit::Hit> hits;
    for (const ModelResult& given : results) {
      if (given.impl()->nucleotides)
        throw Error(ErrorCode::kUsage, "results of nhmmer cannot be merged", merged.model.name,
                    "search all targets at once");
      const hmmjit::ModelResult& result = given.impl()->result;
      if (result.model.name != merged.model.name || result.model.M != merged.model.M ||
          result.model.consensus != merged.model.consensus)
        throw Error(ErrorCode::kInput, "these are results of different models",
                    merged.model.name + ", " + result.model.name,
                    "merge the results of one model against several sets of targets");
      for (hmmjit::Hit hit : result.hits.hits) {
        // Indices continue after the targets of the earlier results.
        hit.index += counters.targets;
        // Thresholds are applied again, for the larger search space.
        hit.flags = {};
        hit.domain_flags.assign(hit.score.domains.size(), {});
        hit.reported_domains = hit.included_domains = 0;
        if (is_candidate(thresholds, hit.score, hit.index)) hits.push_back(std::move(hit));
      }
      counters += result.hits.counters;
      merged.alignments = merged.alignments && result.alignments;
      merged.seconds += result.seconds;
      merged.cpu_seconds += result.cpu_seconds;
    }
    merged.hits = finish_hits(thresholds, std::move(hits), counters);
    return make_result(std::move(merged));
  });
}

}  // namespace hmmjit::v0
