// Internals shared by the readers of the HMM formats.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "io/byte_source.hpp"
#include "model/hmm.hpp"

namespace hmmjit::hmm_parsing {

/// Splits a line at spaces, tabs, CR and LF; a '#' at the start of a token ends the line.
class Tokens {
 public:
  explicit Tokens(std::string_view line) : p_(line.data()), end_(p_ + line.size()) {}
  /// Empty when the line has no more tokens.
  std::string_view next() {
    skip_blanks();
    const char* begin = p_;
    while (p_ < end_ && !is_blank(*p_)) ++p_;
    return {begin, static_cast<std::size_t>(p_ - begin)};
  }
  /// Everything after the leading blanks, up to CR or LF, including '#'.
  std::string_view rest() {
    while (p_ < end_ && (*p_ == ' ' || *p_ == '\t')) ++p_;
    const char* begin = p_;
    while (p_ < end_ && *p_ != '\r' && *p_ != '\n') ++p_;
    return {begin, static_cast<std::size_t>(p_ - begin)};
  }
  static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

 private:
  void skip_blanks() {
    while (p_ < end_ && is_blank(*p_)) ++p_;
    if (p_ < end_ && *p_ == '#') p_ = end_;
  }
  const char* p_;
  const char* end_;
};

/// The next line that is neither blank nor a comment; false at the end of the input.
Result<bool> data_line(BufferedInput& input, std::string_view* line);

/// An error at the last line read, naming the model if its name is known.
std::unexpected<Error> bad_line(const BufferedInput& input, const std::string& model,
                                std::string message);
/// The error for a file that ends inside a model.
std::unexpected<Error> truncated(const BufferedInput& input, const std::string& model,
                                 const std::string& part);

const Alphabet* alphabet_named(std::string_view name);

/// True if the scores of these match emissions or transitions are finite or -infinity: HMMER aborts
/// searches with other scores. It accepts any insert emissions, which no score uses.
inline bool are_probabilities(std::span<const float> values) {
  return std::ranges::all_of(
      values, [](float p) { return p >= 0 && p <= std::numeric_limits<float>::max(); });
}

/// Base of the parsers of HMMER2 and HMMER3 text: common header lines, the frame of the body, and
/// errors that name line and model.
class AsciiParser {
 public:
  AsciiParser(const AsciiParser&) = delete;
  AsciiParser& operator=(const AsciiParser&) = delete;

 protected:
  /// How the formats differ in their common lines.
  struct Rules {
    bool empty_description = false;  ///< DESC may stand alone
    bool single_cutoff = false;      ///< nucleotide models have one number in GA, TC and NC
  };

  AsciiParser(BufferedInput& input, Rules rules) : input_(input), rules_(rules) {}
  ~AsciiParser() = default;

  std::unexpected<Error> bad(std::string message) const {
    return bad_line(input_, hmm_.name, std::move(message));
  }

  /// Reads the header, up to and including the line of transition names. `other(tag, tokens)`
  /// handles lines that only one format has and ignores unknown ones; `missing()` names a line that
  /// the header lacks, or returns null.
  template <typename Other, typename Missing>
  Status header(const Other& other, const Missing& missing) {
    std::string_view line;
    for (;;) {
      HMMJIT_ASSIGN(const bool more, data_line(input_, &line));
      if (!more) return truncated(input_, hmm_.name, "in its header");
      Tokens tokens(line);
      const std::string_view tag = tokens.next();
      if (tag == "HMM") break;
      HMMJIT_ASSIGN(const bool known, common_line(tag, tokens));
      if (!known) HMMJIT_TRY(other(tag, tokens));
    }
    HMMJIT_TRY(check_header());
    if (const char* lack = missing()) return bad(lack);
    HMMJIT_ASSIGN(const bool more, data_line(input_, &line));  // the line of transition names
    if (!more) return truncated(input_, hmm_.name, "after its header");
    return {};
  }
  /// Parses "yes", which sets `value`, or "no", which leaves it, in any case.
  Status flag(std::string_view tag, Tokens& tokens, bool* value) const;

  /// The next line of node k; fails at the end of the input.
  Status body_line(int k, std::string_view* line);
  /// Makes space for node k. Grows node by node: a damaged file may have any LENG.
  void grow(int k);
  /// Fails unless `token`, the first of a match line, is k.
  Status expect_node(int k, std::string_view token) const;
  /// Reads the line that ends the model.
  Status terminator();

  BufferedInput& input_;
  Hmm hmm_;
  bool rf_ = false, cs_ = false;
  int node_ = 0;  // of the last line read

 private:
  Result<bool> common_line(std::string_view tag, Tokens& tokens);
  Status check_header() const;
  Status cutoff(std::string_view tag, Tokens& tokens, std::optional<Cutoff>* out) const;

  Rules rules_;
};

/// Reads one model, after the line of its format tag.
Result<Hmm> read_version2(BufferedInput& input);
/// Reads one binary record, after its magic number. `version` is 'a'..'f'. Without `probabilities`
/// it skips the probabilities, most of a record.
Result<Hmm> read_binary(BufferedInput& input, char version, bool probabilities);

}  // namespace hmmjit::hmm_parsing
