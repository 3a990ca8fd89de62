// Common parts of the ASCII formats of HMMER2 and HMMER3: shared header lines, the frame of the
// body, and errors that name line and model.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "io/hmm_parsing.hpp"

namespace hmmjit::hmm_parsing {

class AsciiParser {
 public:
  AsciiParser(const AsciiParser&) = delete;
  AsciiParser& operator=(const AsciiParser&) = delete;

 protected:
  /// Differences between the formats in shared lines.
  struct Rules {
    bool empty_description = false;  ///< DESC may stand alone
    bool single_cutoff = false;      ///< nucleotide models have one number in GA, TC and NC
  };

  AsciiParser(BufferedInput& input, Rules rules) : input_(input), rules_(rules) {}
  ~AsciiParser() = default;

  std::unexpected<Error> bad(std::string message) const {
    return bad_line(input_, hmm_.name, std::move(message));
  }

  /// Reads the header, up to and including the names of the transitions. `other(tag, tokens)`
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
    HMMJIT_ASSIGN(const bool more, data_line(input_, &line));  // names of the transitions
    if (!more) return truncated(input_, hmm_.name, "after its header");
    return {};
  }
  Status flag(std::string_view tag, Tokens& tokens, bool* value) const;

  /// The next line of node k; fails at the end of the input.
  Status body_line(int k, std::string_view* line);
  /// Makes space for node k. Grown node by node, because LENG of a damaged file may be anything.
  void grow(int k);
  /// Fails unless `token`, the first of a match line, is k.
  Status expect_node(int k, std::string_view token) const;
  /// The line that ends the model.
  Status terminator();

  BufferedInput& input_;
  Hmm hmm_;
  bool rf_ = false, cs_ = false;
  int node_ = 0;  // of the line read last

 private:
  Result<bool> common_line(std::string_view tag, Tokens& tokens);
  Status check_header() const;
  Status cutoff(std::string_view tag, Tokens& tokens, std::optional<Cutoff>* out) const;

  Rules rules_;
};

}  // namespace hmmjit::hmm_parsing
