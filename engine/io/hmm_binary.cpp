// Binary HMMER3 models (.h3m), as written by hmmpress and hmmconvert -b.
#include <fmt/format.h>

#include <cstdint>
#include <type_traits>
#include <vector>

#include "io/hmm_file.hpp"
#include "io/hmm_parsing.hpp"
#include "model/hmm_binary_flags.hpp"

namespace hmmjit::hmm_parsing {
namespace {

using namespace hmm_binary;

class Record {
 public:
  Record(BufferedInput& input, char version, bool probabilities)
      : input_(input), version_(version), probabilities_(probabilities) {}

  Result<Hmm> read() {
    std::uint32_t flags = 0;
    std::int32_t nodes = 0, type = 0;
    HMMJIT_TRY(value(&flags));
    HMMJIT_TRY(value(&nodes));
    HMMJIT_TRY(value(&type));
    if (nodes <= 0) return bad(fmt::format("the number of nodes is {}", nodes));
    if (type < 1 || type > 3) return bad(fmt::format("alphabet code {} is unknown", type));
    hmm_.M = nodes;
    hmm_.alphabet = &alphabet_of(static_cast<AlphabetType>(type));
    std::size_t K = static_cast<std::size_t>(hmm_.alphabet->K);
    std::size_t M = static_cast<std::size_t>(nodes);

    if (probabilities_) {
      hmm_.match.assign(K, 0.0f);
      hmm_.match[0] = 1.0f;
      HMMJIT_TRY(append(M * K, &hmm_.match));
      HMMJIT_TRY(append((M + 1) * K, &hmm_.insert));
      HMMJIT_TRY(append((M + 1) * kTransitions, &hmm_.transition));
    } else {
      HMMJIT_TRY(skip((M * K + (M + 1) * (K + kTransitions)) * sizeof(float)));
    }

    std::string unused;
    HMMJIT_TRY(text(&hmm_.name));
    if (hmm_.name.empty()) return bad("the model has no name");
    if (!are_probabilities(hmm_.match) || !are_probabilities(hmm_.transition))
      return bad("match emissions or transitions that are no probabilities");
    if (flags & kAccession) HMMJIT_TRY(text(&hmm_.accession.emplace()));
    if (flags & kDescription) HMMJIT_TRY(text(&hmm_.description.emplace()));
    if (flags & kRf) HMMJIT_TRY(column(&hmm_.rf));
    if (flags & kMask) HMMJIT_TRY(column(&hmm_.mm));
    if (flags & kConsensus) HMMJIT_TRY(column(&hmm_.consensus));
    if (flags & kCs) HMMJIT_TRY(column(&hmm_.cs));
    if (flags & kAccessibility) HMMJIT_TRY(column(&unused));
    HMMJIT_TRY(text(&unused));  // command log
    std::int32_t number;
    float real;
    HMMJIT_TRY(value(&number));  // sequences
    HMMJIT_TRY(value(&real));    // effective sequences
    if (version_ >= 'c') {
      HMMJIT_TRY(value(&number));
      if (number > 0) hmm_.max_length = number;
    }
    HMMJIT_TRY(text(&unused));  // creation time
    if (flags & kMap) HMMJIT_TRY(append(M + 1, &hmm_.map));
    std::uint32_t checksum;
    HMMJIT_TRY(value(&checksum));
    if (flags & kChecksum) hmm_.checksum = checksum;
    HMMJIT_TRY(statistics(flags));
    HMMJIT_TRY(cutoff(flags & kGa, &hmm_.ga));
    HMMJIT_TRY(cutoff(flags & kTc, &hmm_.tc));
    HMMJIT_TRY(cutoff(flags & kNc, &hmm_.nc));
    if (flags & kComposition) {
      for (std::size_t x = 0; x < K; ++x) HMMJIT_TRY(value(&hmm_.compo[x]));
    }
    if (probabilities_ && (version_ < 'e' || hmm_.consensus.empty()))
      hmm_.consensus = compute_consensus(hmm_);
    return std::move(hmm_);
  }

 private:
  std::unexpected<Error> bad(std::string message) const {
    return fail(ErrorCode::kInput,
                (hmm_.name.empty() ? "binary model: " : "model " + hmm_.name + ": ") + message,
                input_.name(), "the profile file is damaged: press or build it again");
  }

  template <typename T>
  Status value(T* out) {
    static_assert(std::is_trivially_copyable_v<T>);
    HMMJIT_ASSIGN(bool whole, input_.read(out, sizeof *out));
    if (!whole) return truncated(input_, hmm_.name, "in its binary record");
    return {};
  }

  // Appends `count` elements to a vector or string. In pieces: the count comes from the file and
  // may be corrupt.
  template <typename Container>
  Status append(std::size_t count, Container* out) {
    while (count > 0) {
      std::size_t piece = std::min<std::size_t>(count, 1 << 18);
      std::size_t at = out->size();
      out->resize(at + piece);
      HMMJIT_ASSIGN(bool whole, input_.read(out->data() + at, piece * sizeof out->front()));
      if (!whole) return truncated(input_, hmm_.name, "in its binary record");
      count -= piece;
    }
    return {};
  }

  Status skip(std::size_t bytes) {
    while (bytes > 0) {
      HMMJIT_ASSIGN(const std::string_view head, input_.peek());
      if (head.empty()) return truncated(input_, hmm_.name, "in its binary record");
      const std::size_t piece = std::min(bytes, head.size());
      input_.skip(piece);
      bytes -= piece;
    }
    return {};
  }

  // A string: its length with the final NUL, then that many bytes; length 0 means no text.
  Status text(std::string* out) {
    std::int32_t length = 0;
    HMMJIT_TRY(value(&length));
    if (length < 0 || static_cast<std::size_t>(length) > kLongestModelLine) {
      return bad(fmt::format("a text of {} bytes is not plausible", length));
    }
    out->clear();
    HMMJIT_TRY(append(static_cast<std::size_t>(length), out));
    out->resize(std::min(out->size(), out->find('\0')));
    return {};
  }

  // Annotation: M + 2 characters, with node k at index k; both ends are unused.
  Status column(std::string* out) {
    std::size_t M = static_cast<std::size_t>(hmm_.M);
    HMMJIT_TRY(append(M + 2, out));
    *out = out->substr(1, M);
    return {};
  }

  Status statistics(std::uint32_t flags) {
    float v[6];
    int count = version_ == 'a' ? 3 : 6;
    for (int i = 0; i < count; ++i) HMMJIT_TRY(value(&v[i]));
    if ((flags & kStatistics) == 0) return {};
    if (version_ == 'a') {
      hmm_.calibration = {v[1], v[0], v[1], v[0], v[2], v[0]};
    } else {
      hmm_.calibration = {v[0], v[1], v[2], v[3], v[4], v[5]};
    }
    return {};
  }

  Status cutoff(std::uint32_t present, std::optional<Cutoff>* out) {
    Cutoff c;
    HMMJIT_TRY(value(&c.sequence));
    HMMJIT_TRY(value(&c.domain));
    if (present != 0) *out = c;
    return {};
  }

  BufferedInput& input_;
  char version_;
  bool probabilities_;
  Hmm hmm_;
};

}  // namespace

Result<Hmm> read_binary(BufferedInput& input, char version, bool probabilities) {
  return Record(input, version, probabilities).read();
}

}  // namespace hmmjit::hmm_parsing
