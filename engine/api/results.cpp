// Views on search results.
#include "api/results.hpp"

#include "api/copy_members.hpp"
#include "report/numbers.hpp"

namespace hmmjit::v0 {

FilterCounts to_counts(const FilterCounters& c) {
  return {c.targets, c.residues, c.msv, c.bias, c.viterbi, c.forward};
}

ModelResult make_result(const hmmjit::ModelResult& source,
                        const std::optional<NucleotideFields>& nucleotides) {
  auto out = std::make_shared<ModelResult::Impl>();
  out->result = source;
  out->nucleotides = nucleotides;
  const hmmjit::ModelResult& r = out->result;
  out->accession = r.model.accession.value_or("");
  out->description = r.model.description.value_or("");
  out->counts = to_counts(r.hits.counters);
  std::size_t domains = 0;
  for (const hmmjit::Hit& hit : r.hits.hits) domains += hit.score.domains.size();
  out->domains.reserve(domains);  // spans point into it
  out->hits.reserve(r.hits.hits.size());
  for (const hmmjit::Hit& hit : r.hits.hits) {
    const std::size_t first = out->domains.size();
    for (std::size_t i = 0; i < hit.score.domains.size(); ++i) {
      const domain::Domain& d = hit.score.domains[i];
      Domain& view = out->domains.emplace_back();
      view.envelope_from = d.ienv;
      view.envelope_to = d.jenv;
      view.alignment_from = d.iali;
      view.alignment_to = d.jali;
      view.model_from = d.hmm_from;
      view.model_to = d.hmm_to;
      view.score = d.bits;
      view.bias = bias_bits(d);
      view.conditional_e_value = conditional_e_value(d, r.hits);
      view.independent_e_value = independent_e_value(d, r.hits);
      view.ln_p = d.log_p;
      view.accuracy = mean_accuracy(d);
      HMMJIT_COPY_MEMBERS(HMMJIT_DOMAIN_MEMBERS, 19)(view, hit.domain_flags[i]);
      view.alignment = {d.alignment.model, d.alignment.match, d.alignment.sequence,
                        d.alignment.pp,    d.alignment.rf,    d.alignment.cs};
    }
    Hit& view = out->hits.emplace_back();
    HMMJIT_COPY_MEMBERS(HMMJIT_HIT_MEMBERS, 14)(view, hit);
    HMMJIT_COPY_MEMBERS(HMMJIT_HIT_MEMBERS, 13)(view, hit.score);
    HMMJIT_COPY_MEMBERS(HMMJIT_HIT_MEMBERS, 17)(view, hit.flags);
    view.e_value = target_e_value(hit, r.hits);
    view.ln_p = hit.score.log_p;
    view.score = hit.score.bits;
    view.bias = target_bias(hit);
    view.domains = {out->domains.data() + first, hit.score.domains.size()};
  }
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

std::size_t ModelResult::index() const { return impl_->result.index; }
const std::string& ModelResult::model_name() const { return impl_->result.model.name; }
const std::string& ModelResult::model_accession() const { return impl_->accession; }
const std::string& ModelResult::model_description() const { return impl_->description; }
int ModelResult::model_length() const { return impl_->result.model.M; }
std::span<const Hit> ModelResult::hits() const { return impl_->hits; }
std::size_t ModelResult::reported() const { return impl_->result.hits.reported; }
std::size_t ModelResult::included() const { return impl_->result.hits.included; }
double ModelResult::Z() const { return impl_->result.hits.Z; }
double ModelResult::domZ() const { return impl_->result.hits.domZ; }
const FilterCounts& ModelResult::counts() const { return impl_->counts; }
bool ModelResult::has_alignments() const { return impl_->result.alignments; }
bool ModelResult::long_targets() const { return impl_->nucleotides.has_value(); }
double ModelResult::seconds() const { return impl_->result.seconds; }

}  // namespace hmmjit::v0
