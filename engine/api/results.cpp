// Results: views, merging, bytes.
#include "api/results.hpp"

#include <algorithm>
#include <cstdlib>

#include "api/handles.hpp"
#include "core/coding.hpp"
#include "report/numbers.hpp"
#include "search/hit_coding.hpp"

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

Hit to_hit(const hmmjit::Hit& hit, std::size_t first_domain, const hmmjit::ModelResult& result) {
  Hit out{};
  out.size = sizeof out;
  out.name = hit.name.c_str();
  out.accession = hit.accession.c_str();
  out.description = hit.description.c_str();
  out.index = hit.index;
  out.e_value = target_e_value(hit, result.hits);
  out.score = hit.score.bits;
  out.bias = target_bias(hit, result);
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

ModelResult make_result(hmmjit::ModelResult result, bool scan) {
  auto out = std::make_shared<ModelResult::Impl>();
  out->result = std::move(result);
  out->scan = scan;
  const hmmjit::ModelResult& r = out->result;
  std::size_t domains = 0;
  for (const hmmjit::Hit& hit : r.hits.hits) domains += hit.score.domains.size();
  out->domains.reserve(domains);
  out->hits.reserve(r.hits.hits.size());
  for (const hmmjit::Hit& hit : r.hits.hits) {
    out->hits.push_back(to_hit(hit, out->domains.size(), r));
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
  info.long_targets = r.nucleotides.has_value();
  info.scan = scan;
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

// ---- results of several sets of targets ------------------------------------------------------

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
      if (given.impl()->result.nucleotides || given.impl()->scan)
        throw Error(ErrorCode::kUsage, "results of nhmmer and of scans cannot be merged",
                    merged.model.name, "search all at once");
      const hmmjit::ModelResult& result = given.impl()->result;
      if (result.model.name != merged.model.name || result.model.M != merged.model.M ||
          result.model.consensus != merged.model.consensus)
        throw Error(ErrorCode::kInput, "these are results of different models",
                    merged.model.name + ", " + result.model.name,
                    "merge the results of one model against several sets of targets");
      for (hmmjit::Hit hit : result.hits.hits) {
        // Indices continue after the earlier results' targets.
        hit.index += counters.targets;
        // Thresholds apply again, with the larger search space.
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

// ---- results as bytes, for other processes ---------------------------------------------------

namespace {

constexpr std::string_view kBegin = "hmmjit result " HMMJIT_VERSION "\n";

template <typename Coder, typename Names>
void code_names(Coder& coder, Names& names) {
  coder.text(names.name);
  coder.optional_text(names.accession);
  coder.optional_text(names.description);
}

template <typename Coder, typename Result, typename Flag>
void code_result(Coder& coder, Result& r, Flag& scan) {
  coder.count(r.index);
  code_names(coder, r.model);
  coder.count(r.model.M);
  coder.text(r.model.consensus);
  bool built = r.model.built.has_value();
  coder.count(built);
  if constexpr (Coder::kReads) {
    if (built) r.model.built.emplace();
  }
  if (built) code_names(coder, *r.model.built);
  auto& c = r.calibration;
  for (auto* value : {&c.msv_mu, &c.msv_lambda, &c.viterbi_mu, &c.viterbi_lambda, &c.forward_tau,
                      &c.forward_lambda})
    coder.bytes(*value);
  auto& list = r.hits;
  coder.bytes(list.Z);
  coder.bytes(list.domZ);
  for (auto* flag : {&list.Z_is_set, &list.domZ_is_set, &list.sorted_by_score, &r.alignments})
    coder.count(*flag);
  auto& n = list.counters;
  for (auto* count : {&list.candidates, &list.reported, &list.included, &n.targets, &n.residues,
                      &n.msv, &n.bias, &n.viterbi, &n.forward})
    coder.count(*count);
  for (auto* length : {&list.longest_name, &list.longest_accession, &list.longest_shown})
    coder.count(*length);
  bool of_nhmmer = r.nucleotides.has_value();
  coder.count(of_nhmmer);
  if constexpr (Coder::kReads) {
    if (of_nhmmer) r.nucleotides.emplace();
  }
  if (of_nhmmer) {
    auto& fields = *r.nucleotides;
    coder.bytes(fields.longest_position);
    for (auto* F : {&fields.F1, &fields.F2, &fields.F3}) coder.bytes(*F);
  }
  coder.count(scan);
  coder.bytes(r.seconds);
  coder.bytes(r.cpu_seconds);
}

// True if coordinates and alignments are consistent: with a damaged result, reports would access
// memory out of bounds.
bool is_sound(const hmmjit::ModelResult& result, const hmmjit::Hit& hit, bool scan) {
  const int model = scan ? hit.length : result.model.M, target = scan ? result.model.M : hit.length;
  const auto within = [](int place, int length) { return place >= 1 && place <= length; };
  return std::ranges::all_of(hit.score.domains, [&](const domain::Domain& d) {
    const domain::Alignment& a = d.alignment;
    const auto others = [](const std::string& row, char gap) {
      return std::ranges::count_if(row, [&](char c) { return c != gap; });
    };
    return within(d.hmm_from, d.hmm_to) && within(d.hmm_to, model) && within(d.ienv, target) &&
           within(d.jenv, target) && within(d.iali, target) && within(d.jali, target) &&
           a.match.size() == a.model.size() && a.sequence.size() == a.model.size() &&
           a.pp.size() == a.model.size() && (a.rf.empty() || a.rf.size() == a.model.size()) &&
           (a.cs.empty() || a.cs.size() == a.model.size()) &&
           (a.model.empty() || (others(a.model, '.') <= d.hmm_to - d.hmm_from + 1 &&
                                others(a.sequence, '-') == std::abs(d.jali - d.iali) + 1));
  });
}

}  // namespace

std::string ModelResult::bytes() const {
  return guarded([&] {
    const hmmjit::ModelResult& result = impl_->result;
    std::string out(kBegin);
    FieldWriter writer(out);
    code_result(writer, result, impl_->scan);
    writer.count(result.hits.hits.size());
    for (const hmmjit::Hit& hit : result.hits.hits) encode_judged_hit(hit, result.alignments, out);
    return out;
  });
}

ModelResult ModelResult::from_bytes(std::string_view bytes) {
  return guarded([&] {
    if (!bytes.starts_with(kBegin))
      throw Error(ErrorCode::kInput, "these are no bytes of a result of this version", {},
                  "write and read results with one version of the library");
    Decoder decoder(bytes.substr(kBegin.size()));
    FieldReader reader(decoder);
    hmmjit::ModelResult result;
    std::uint64_t hits = 0;
    bool scan = false;
    code_result(reader, result, scan);
    reader.count(hits);
    constexpr std::uint64_t kLeastHit = 80;
    if (reader.fits(hits, kLeastHit)) result.hits.hits.resize(hits);
    bool sound = scan || result.model.consensus.size() == static_cast<std::size_t>(result.model.M);
    for (hmmjit::Hit& hit : result.hits.hits)
      sound = sound && decode_judged_hit(decoder, hit) && is_sound(result, hit, scan);
    if (!sound || !decoder.ok() || decoder.left() != 0 ||
        result.hits.reported > result.hits.hits.size())
      throw Error(ErrorCode::kInput, "the bytes of a result are damaged");
    return make_result(std::move(result), scan);
  });
}

}  // namespace hmmjit::v0
