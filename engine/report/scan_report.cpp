#include "report/scan_report.hpp"

namespace hmmjit {

void append_scan_report(std::string& out, const ScannedSequence& sequence, const HitList& hits,
                        const ReportOptions& options, const FilterOptions& filters,
                        const ReportTimes& times) {
  ReportOptions by_sequence = options;
  by_sequence.by_sequence = true;
  const ModelInfo query{.name = sequence.names.name,
                        .accession = sequence.names.accession,
                        .description = sequence.names.description,
                        .M = sequence.length,
                        .built = sequence.names};
  append_query(out, query);
  append_target_scores(out, hits, by_sequence);
  out += "\n\n";
  append_domain_annotation(out, query, hits, by_sequence, 0, hits.hits.size());
  out += "\n\n";
  HitList counted;  // without the hits: only its numbers are printed
  counted.Z = hits.Z;
  counted.domZ = hits.domZ;
  counted.Z_is_set = hits.Z_is_set;
  counted.domZ_is_set = hits.domZ_is_set;
  counted.counters = hits.counters;
  counted.counters.targets = sequence.models;
  counted.counters.residues = sequence.nodes;
  append_statistics(out, query, counted, filters, times, true);
  out += "//\n";
}

}  // namespace hmmjit
