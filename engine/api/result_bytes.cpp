// Serialises results for other processes.
#include "api/results.hpp"
#include "core/coding.hpp"

namespace hmmjit::v0 {
namespace {

constexpr std::string_view kBegin = "hmmjit result " HMMJIT_VERSION "\n";

// One description of the members serves writing and reading. A reader checks counts against the
// bytes that follow.
class Writer {
 public:
  static constexpr bool kReads = false;
  template <typename T>
  void number(const T& value) {
    put_bytes(out, value);
  }
  void text(const std::string& value) { put_text(out, value); }
  template <typename T, typename Each>
  void list(const std::vector<T>& values, std::size_t, Each&& each) {
    put_count(out, values.size());
    for (const T& value : values) each(value);
  }
  void optional_text(const std::optional<std::string>& value) {
    put_count(out, value.has_value());
    if (value) text(*value);
  }
  std::string out;
};
class Reader {
 public:
  static constexpr bool kReads = true;
  explicit Reader(std::string_view bytes) : decoder(bytes) {}
  template <typename T>
  void number(T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      value = decoder.bytes<unsigned char>() != 0;
    } else {
      value = decoder.bytes<T>();
    }
  }
  void text(std::string& value) { value = decoder.text(); }
  template <typename T, typename Each>
  void list(std::vector<T>& values, std::size_t least_bytes, Each&& each) {
    const std::uint64_t size = decoder.count();
    if (!decoder.ok() || size > decoder.left() / least_bytes) return fail();
    values.resize(size);
    for (T& value : values) {
      each(value);
      if (!ok()) return;
    }
  }
  void optional_text(std::optional<std::string>& value) {
    value.reset();
    if (decoder.count() != 0) text(value.emplace());
  }
  bool ok() const { return decoder.ok() && !failed_; }
  void fail() { failed_ = true; }
  Decoder decoder;

 private:
  bool failed_ = false;
};

template <typename Coder, typename Names>
void code_names(Coder& coder, Names& names) {
  coder.text(names.name);
  coder.optional_text(names.accession);
  coder.optional_text(names.description);
}

template <typename Coder, typename Flags>
void code_flags(Coder& coder, Flags& flags) {
  coder.number(flags.reported);
  coder.number(flags.included);
}

template <typename Coder, typename Domain>
void code_domain(Coder& coder, Domain& d) {
  for (auto* place : {&d.ienv, &d.jenv, &d.iali, &d.jali, &d.hmm_from, &d.hmm_to})
    coder.number(*place);
  for (auto* value : {&d.envelope_nats, &d.correction_nats, &d.bias_nats, &d.accuracy_sum, &d.bits})
    coder.number(*value);
  coder.number(d.log_p);
  for (auto* line : {&d.alignment.rf, &d.alignment.cs, &d.alignment.model, &d.alignment.match,
                     &d.alignment.sequence, &d.alignment.pp})
    coder.text(*line);
}

template <typename Coder, typename Hit>
void code_hit(Coder& coder, Hit& hit) {
  coder.text(hit.name);
  coder.text(hit.accession);
  coder.text(hit.description);
  coder.number(hit.index);
  coder.number(hit.length);
  auto& score = hit.score;
  for (auto* value : {&score.bits, &score.pre_bits, &score.correction_nats}) coder.number(*value);
  coder.number(score.log_p);
  coder.number(score.expected_domains);
  for (auto* count : {&score.regions, &score.clustered, &score.overlaps, &score.envelopes})
    coder.number(*count);
  coder.number(score.best_domain);
  coder.list(score.domains, 52, [&](auto& domain) { code_domain(coder, domain); });
  code_flags(coder, hit.flags);
  coder.list(hit.domain_flags, 2, [&](auto& flags) { code_flags(coder, flags); });
  coder.number(hit.reported_domains);
  coder.number(hit.included_domains);
  coder.number(hit.sort_key);
  if constexpr (Coder::kReads) {
    if (score.domains.empty() || score.best_domain >= score.domains.size() ||
        hit.domain_flags.size() != score.domains.size())
      coder.fail();
  }
}

template <typename Coder, typename Result>
void code_result(Coder& coder, Result& r) {
  coder.number(r.index);
  code_names(coder, r.model);
  coder.number(r.model.M);
  coder.text(r.model.consensus);
  bool built = r.model.built.has_value();
  coder.number(built);
  if constexpr (Coder::kReads) {
    if (built) r.model.built.emplace();
  }
  if (built) code_names(coder, *r.model.built);
  auto& c = r.calibration;
  for (auto* value : {&c.msv_mu, &c.msv_lambda, &c.viterbi_mu, &c.viterbi_lambda, &c.forward_tau,
                      &c.forward_lambda})
    coder.number(*value);
  auto& list = r.hits;
  coder.list(list.hits, 80, [&](auto& hit) { code_hit(coder, hit); });
  coder.number(list.Z);
  coder.number(list.domZ);
  coder.number(list.Z_is_set);
  coder.number(list.domZ_is_set);
  coder.number(list.sorted_by_score);
  coder.number(list.reported);
  coder.number(list.included);
  for (auto* length : {&list.longest_name, &list.longest_accession, &list.longest_shown})
    coder.number(*length);
  auto& n = list.counters;
  for (auto* count : {&n.targets, &n.residues, &n.msv, &n.bias, &n.viterbi, &n.forward})
    coder.number(*count);
  coder.number(r.alignments);
  coder.number(r.seconds);
  coder.number(r.cpu_seconds);
}

}  // namespace

std::string ModelResult::bytes() const {
  return guarded([&] {
    Writer writer;
    writer.out = kBegin;
    code_result(writer, impl_->result);
    return std::move(writer.out);
  });
}

ModelResult ModelResult::from_bytes(std::string_view bytes) {
  return guarded([&] {
    if (!bytes.starts_with(kBegin))
      throw Error(ErrorCode::kInput, "these are no bytes of a result of this version", {},
                  "write and read results with one version of the library");
    Reader reader(bytes.substr(kBegin.size()));
    hmmjit::ModelResult result;
    code_result(reader, result);
    if (!reader.ok() || reader.decoder.left() != 0 ||
        result.hits.reported > result.hits.hits.size())
      throw Error(ErrorCode::kInput, "the bytes of a result are damaged");
    return make_result(result);
  });
}

}  // namespace hmmjit::v0
