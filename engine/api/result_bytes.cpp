// Serialises results for other processes.
#include "api/results.hpp"
#include "core/coding.hpp"
#include "search/hit_coding.hpp"

namespace hmmjit::v0 {
namespace {

constexpr std::string_view kBegin = "hmmjit result " HMMJIT_VERSION "\n";

template <typename Coder, typename Names>
void code_names(Coder& coder, Names& names) {
  coder.text(names.name);
  coder.optional_text(names.accession);
  coder.optional_text(names.description);
}

template <typename Coder, typename Result, typename Nucleotides>
void code_result(Coder& coder, Result& r, Nucleotides& nucleotides) {
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
  bool of_nhmmer = nucleotides.has_value();
  coder.count(of_nhmmer);
  if constexpr (Coder::kReads) {
    if (of_nhmmer) nucleotides.emplace();
  }
  if (of_nhmmer) coder.bytes(*nucleotides);
  coder.bytes(r.seconds);
  coder.bytes(r.cpu_seconds);
}

}  // namespace

std::string ModelResult::bytes() const {
  return guarded([&] {
    const hmmjit::ModelResult& result = impl_->result;
    std::string out(kBegin);
    FieldWriter writer(out);
    code_result(writer, result, impl_->nucleotides);
    writer.count(result.hits.hits.size());
    for (const hmmjit::Hit& hit : result.hits.hits)
      encode_judged_hit(hit, result.alignments, out);
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
    std::optional<NucleotideFields> nucleotides;
    std::uint64_t hits = 0;
    code_result(reader, result, nucleotides);
    reader.count(hits);
    constexpr std::uint64_t kLeastHit = 80;
    if (reader.fits(hits, kLeastHit)) result.hits.hits.resize(hits);
    for (hmmjit::Hit& hit : result.hits.hits) {
      if (!decode_judged_hit(decoder, hit)) break;
    }
    if (!decoder.ok() || decoder.left() != 0 ||
        result.hits.reported > result.hits.hits.size())
      throw Error(ErrorCode::kInput, "the bytes of a result are damaged");
    return make_result(std::move(result), nucleotides);
  });
}

}  // namespace hmmjit::v0
