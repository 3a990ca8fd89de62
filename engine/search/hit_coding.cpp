#include "search/hit_coding.hpp"

#include <cstdint>

namespace hmmjit {

namespace {

// `has_text`: of the domain of a number, whether its alignment is kept.
template <typename HasText>
void encode(const Hit& hit, const HasText& has_text, std::string& out) {
  const domain::TargetScore& score = hit.score;
  put_count(out, hit.index);
  put_count(out, static_cast<std::uint64_t>(hit.length));
  put_text(out, hit.name);
  put_text(out, hit.accession);
  put_text(out, hit.description);
  put_bytes(out, score.bits);
  put_bytes(out, score.pre_bits);
  put_bytes(out, score.correction_nats);
  put_bytes(out, score.log_p);
  put_bytes(out, score.expected_domains);
  for (const int count : {score.regions, score.clustered, score.overlaps, score.envelopes})
    put_count(out, static_cast<std::uint64_t>(count));
  put_count(out, score.best_domain);
  put_count(out, score.domains.size());
  for (std::size_t d = 0; d < score.domains.size(); ++d) {
    const domain::Domain& domain = score.domains[d];
    for (const int place :
         {domain.ienv, domain.jenv, domain.iali, domain.jali, domain.hmm_from, domain.hmm_to})
      put_count(out, static_cast<std::uint64_t>(place));
    for (const float value : {domain.envelope_nats, domain.correction_nats, domain.bias_nats,
                              domain.accuracy_sum, domain.bits})
      put_bytes(out, value);
    put_bytes(out, domain.log_p);
    const bool text = has_text(d);
    put_count(out, text);
    if (!text) continue;
    const domain::Alignment& a = domain.alignment;
    for (const std::string* line : {&a.rf, &a.cs, &a.model, &a.match, &a.sequence, &a.pp})
      put_text(out, *line);
  }
}

// What encode_hit leaves out.
struct Judgement {
  double sort_key;
  std::int32_t reported_domains, included_domains;
  Hit::Flags flags;
};

}  // namespace

void encode_hit(const Hit& hit, bool alignments, std::string& out) {
  const auto has_text = [&](std::size_t d) {
    // A domain can be included without being reported, where the thresholds say so.
    return alignments && (hit.domain_flags[d].reported || hit.domain_flags[d].included);
  };
  encode(hit, has_text, out);
}

bool decode_hit(Decoder& decoder, Hit& hit) {
  hit = {};
  domain::TargetScore& score = hit.score;
  hit.index = decoder.count();
  hit.length = decoder.integer();
  hit.name = decoder.text();
  hit.accession = decoder.text();
  hit.description = decoder.text();
  score.bits = decoder.bytes<float>();
  score.pre_bits = decoder.bytes<float>();
  score.correction_nats = decoder.bytes<float>();
  score.log_p = decoder.bytes<double>();
  score.expected_domains = decoder.bytes<float>();
  for (int* count : {&score.regions, &score.clustered, &score.overlaps, &score.envelopes})
    *count = decoder.integer();
  score.best_domain = decoder.count();
  // A domain has more bytes than this: no damaged count makes memory of its own size.
  constexpr std::size_t kLeastDomain = 35;
  const std::uint64_t domains = decoder.count();
  if (!decoder.ok() || domains == 0 || domains > decoder.left() / kLeastDomain ||
      score.best_domain >= domains)
    return false;
  score.domains.resize(domains);
  for (domain::Domain& domain : score.domains) {
    for (int* place :
         {&domain.ienv, &domain.jenv, &domain.iali, &domain.jali, &domain.hmm_from, &domain.hmm_to})
      *place = decoder.integer();
    for (float* value : {&domain.envelope_nats, &domain.correction_nats, &domain.bias_nats,
                         &domain.accuracy_sum, &domain.bits})
      *value = decoder.bytes<float>();
    domain.log_p = decoder.bytes<double>();
    if (decoder.count_up_to<unsigned>(1) == 0) continue;
    domain::Alignment& a = domain.alignment;
    for (std::string* line : {&a.rf, &a.cs, &a.model, &a.match, &a.sequence, &a.pp})
      *line = decoder.text();
  }
  return decoder.ok();
}

void encode_judged_hit(const Hit& hit, bool alignments, std::string& out) {
  Judgement judgement{};
  judgement.sort_key = hit.sort_key;
  judgement.reported_domains = hit.reported_domains;
  judgement.included_domains = hit.included_domains;
  judgement.flags = hit.flags;
  put_bytes(out, judgement);
  encode(
      hit, [alignments](std::size_t) { return alignments; }, out);
  for (const Hit::Flags of_domain : hit.domain_flags) put_bytes(out, of_domain);
}

bool decode_judged_hit(Decoder& decoder, Hit& hit) {
  const auto judgement = decoder.bytes<Judgement>();
  if (!decode_hit(decoder, hit)) return false;
  hit.sort_key = judgement.sort_key;
  hit.reported_domains = judgement.reported_domains;
  hit.included_domains = judgement.included_domains;
  hit.flags = judgement.flags;
  hit.domain_flags.resize(hit.score.domains.size());
  for (Hit::Flags& of_domain : hit.domain_flags) of_domain = decoder.bytes<Hit::Flags>();
  return decoder.ok();
}

}  // namespace hmmjit
