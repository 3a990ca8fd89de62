#include "search/hit_coding.hpp"

#include <cstdint>

namespace hmmjit {
namespace {

// `has_text(d)`: whether the alignment of domain `d` is written.
template <typename Coder, typename SomeHit, typename HasText>
void code_hit(Coder& coder, SomeHit& hit, const HasText& has_text) {
  auto& score = hit.score;
  coder.count(hit.index);
  coder.count(hit.length);
  for (auto* text : {&hit.name, &hit.accession, &hit.description}) coder.text(*text);
  for (auto* value : {&score.bits, &score.pre_bits, &score.correction_nats}) coder.bytes(*value);
  coder.bytes(score.log_p);
  coder.bytes(score.expected_domains);
  for (auto* count : {&score.regions, &score.clustered, &score.overlaps, &score.envelopes})
    coder.count(*count);
  coder.count(score.best_domain);
  std::uint64_t domains = score.domains.size();
  coder.count(domains);
  if constexpr (Coder::kReads) {
    constexpr std::uint64_t kLeastDomain = 35;
    if (domains == 0 || score.best_domain >= domains) coder.fail();
    if (!coder.fits(domains, kLeastDomain)) return;
    score.domains.resize(domains);
  }
  for (std::size_t i = 0; i < domains; ++i) {
    auto& d = score.domains[i];
    for (auto* place : {&d.ienv, &d.jenv, &d.iali, &d.jali, &d.hmm_from, &d.hmm_to})
      coder.count(*place);
    for (auto* value :
         {&d.envelope_nats, &d.correction_nats, &d.bias_nats, &d.accuracy_sum, &d.bits})
      coder.bytes(*value);
    coder.bytes(d.log_p);
    bool text = has_text(i);
    coder.count(text);
    if (!text) continue;
    auto& a = d.alignment;
    for (auto* line : {&a.rf, &a.cs, &a.model, &a.match, &a.sequence, &a.pp}) coder.text(*line);
  }
}

template <typename Coder, typename Flags>
void code_flags(Coder& coder, Flags& flags) {
  coder.count(flags.reported);
  coder.count(flags.included);
}

template <typename Coder, typename SomeHit>
void code_judgement(Coder& coder, SomeHit& hit) {
  coder.bytes(hit.sort_key);
  coder.count(hit.reported_domains);
  coder.count(hit.included_domains);
  code_flags(coder, hit.flags);
  for (auto& flags : hit.domain_flags) code_flags(coder, flags);
}

constexpr auto kNoText = [](std::size_t) { return false; };

}  // namespace

void encode_hit(const Hit& hit, bool alignments, std::string& out) {
  FieldWriter writer(out);
  code_hit(writer, hit, [&](std::size_t d) {
    // A domain can be included without being reported, if the thresholds say so.
    return alignments && (hit.domain_flags[d].reported || hit.domain_flags[d].included);
  });
}

bool decode_hit(Decoder& decoder, Hit& hit) {
  hit = {};
  FieldReader reader(decoder);
  code_hit(reader, hit, kNoText);
  return decoder.ok();
}

void encode_judged_hit(const Hit& hit, bool alignments, std::string& out) {
  FieldWriter writer(out);
  code_hit(writer, hit, [&](std::size_t) { return alignments; });
  code_judgement(writer, hit);
}

bool decode_judged_hit(Decoder& decoder, Hit& hit) {
  if (!decode_hit(decoder, hit)) return false;
  hit.domain_flags.resize(hit.score.domains.size());
  FieldReader reader(decoder);
  code_judgement(reader, hit);
  return decoder.ok();
}

}  // namespace hmmjit
