#include "search/result_writer.hpp"

#include "core/threads.hpp"
#include "search/stored_hits.hpp"

namespace hmmjit::search_run {

Status ResultWriter::deliver(const ModelResult& result, ResultSink& sink) {
  const double used = thread_seconds();
  counters_ += result.hits.counters;
  hits_ += result.hits.reported;
  for (const Hit& hit : result.hits.hits)
    domains_ += static_cast<std::uint64_t>(hit.reported_domains);
  ++progress_.results_delivered;
  const Status status = sink.receive(result);
  if (result.stored != nullptr) domains_ += result.stored->domains_reported();
  seconds_ += thread_seconds() - used;
  return status;
}

void ResultWriter::add_to(SearchStatistics& statistics) const {
  statistics.counters += counters_;
  statistics.hits_reported += hits_;
  statistics.domains_reported += domains_;
  statistics.report_seconds += seconds_;
}

}  // namespace hmmjit::search_run
