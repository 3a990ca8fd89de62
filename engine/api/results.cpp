// Views on search results.
#include "api/results.hpp"

#include "report/numbers.hpp"

namespace hmmjit::v0 {
namespace {

Domain to_domain(const hmmjit::Hit& hit, std::size_t number, std::size_t hit_number,
                 const HitList& list) {
  const domain::Domain& d = hit.score.domains[number];
  Domain out{};
  out.size = sizeof out;
  out.hit = hit_number;
  out.envelope_from = d.ienv;
  out.envelope_to = d.jenv;
  out.alignment_from = d.iali;
  out.alignment_to = d.jali;
  out.model_from = d.hmm_from;
  out.model_to = d.hmm_to;
  out.reported = hit.domain_flags[number].reported;
  out.included = hit.domain_flags[number].included;
  out.score = d.bits;
  out.bias = bias_bits(d);
  out.conditional_e_value = conditional_e_value(d, list);
  out.independent_e_value = independent_e_value(d, list);
  out.accuracy = mean_accuracy(d);
  out.model = d.alignment.model.c_str();
  out.match = d.alignment.match.c_str();
  out.sequence = d.alignment.sequence.c_str();
  out.posterior = d.alignment.pp.c_str();
  out.reference = d.alignment.rf.c_str();
  out.structure = d.alignment.cs.c_str();
  out.ln_p = d.log_p;
  return out;
}

Hit to_hit(const hmmjit::Hit& hit, std::size_t first_domain, const HitList& list) {
  Hit out{};
  out.size = sizeof out;
  out.name = hit.name.c_str();
  out.accession = hit.accession.c_str();
  out.description = hit.description.c_str();
  out.index = hit.index;
  out.e_value = target_e_value(hit, list);
  out.score = hit.score.bits;
  out.bias = target_bias(hit);
  out.expected_domains = hit.score.expected_domains;
  out.length = hit.length;
  out.reported = hit.flags.reported;
  out.included = hit.flags.included;
  out.regions = hit.score.regions;
  out.clustered = hit.score.clustered;
  out.overlaps = hit.score.overlaps;
  out.envelopes = hit.score.envelopes;
  out.best_domain = hit.score.best_domain;
  out.first_domain = first_domain;
  out.domains = hit.score.domains.size();
  out.ln_p = hit.score.log_p;
  return out;
}

}  // namespace

FilterCounts to_counts(const FilterCounters& c) {
  return {c.targets, c.residues, c.msv, c.bias, c.viterbi, c.forward};
}

ModelResult make_result(hmmjit::ModelResult result,
                        const std::optional<NucleotideFields>& nucleotides) {
  auto out = std::make_shared<ModelResult::Impl>();
  out->result = std::move(result);
  out->nucleotides = nucleotides;
  const hmmjit::ModelResult& r = out->result;
  std::size_t domains = 0;
  for (const hmmjit::Hit& hit : r.hits.hits) domains += hit.score.domains.size();
  out->domains.reserve(domains);
  out->hits.reserve(r.hits.hits.size());
  for (const hmmjit::Hit& hit : r.hits.hits) {
    out->hits.push_back(to_hit(hit, out->domains.size(), r.hits));
    for (std::size_t i = 0; i < hit.score.domains.size(); ++i)
      out->domains.push_back(to_domain(hit, i, out->hits.size() - 1, r.hits));
  }
  ResultInfo& info = out->info;
  info.size = sizeof info;
  info.model_index = r.index;
  info.model_name = r.model.name.c_str();
  info.model_accession = r.model.accession ? r.model.accession->c_str() : "";
  info.model_description = r.model.description ? r.model.description->c_str() : "";
  info.model_length = r.model.M;
  info.has_alignments = r.alignments;
  info.hits = out->hits.size();
  info.reported = r.hits.reported;
  info.included = r.hits.included;
  info.domains = domains;
  info.Z = r.hits.Z;
  info.domZ = r.hits.domZ;
  info.seconds = r.seconds;
  info.counts = to_counts(r.hits.counters);
  info.long_targets = nucleotides.has_value();
  return ModelResult(std::move(out));
}

Status deliver(ModelResult result, const SearchCallbacks& callbacks, HostCalls& host,
               std::vector<ModelResult>& results) {
  if (!callbacks.result) {
    results.push_back(std::move(result));
    return {};
  }
  if (host.run([&] { callbacks.result(result); })) return {};
  return fail(hmmjit::ErrorCode::kInterrupted, "a callback failed");
}

const ResultInfo& ModelResult::info() const { return impl_->info; }
std::span<const Hit> ModelResult::hits() const { return impl_->hits; }
std::span<const Domain> ModelResult::domains() const { return impl_->domains; }

}  // namespace hmmjit::v0
