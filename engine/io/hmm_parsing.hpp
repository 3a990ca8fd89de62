// Internals shared by the readers of the HMM formats.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "io/byte_source.hpp"
#include "model/hmm.hpp"

namespace hmmjit::hmm_parsing {

/// Splits a line at space, tab, CR, LF; '#' at the start of a token ends the line.
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
  /// Everything after the blanks, up to CR or LF, '#' included.
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

/// "yes"/"no" in any case.
bool parse_flag(std::string_view token, bool* value);
bool equal_ignoring_case(std::string_view a, std::string_view b);

/// An error at the line read last, naming the model if its name is known.
std::unexpected<Error> bad_line(const BufferedInput& input, const std::string& model,
                                std::string message);
/// The error for a file that ends inside a model.
std::unexpected<Error> truncated(const BufferedInput& input, const std::string& model,
                                 const std::string& part);

const Alphabet* alphabet_named(std::string_view name);

/// Body and header of one model, the first line (format tag) already consumed.
Result<Hmm> read_version2(BufferedInput& input);
/// One binary record, the magic number already consumed. `version` is 'a'..'f'.
Result<Hmm> read_binary(BufferedInput& input, char version);

}  // namespace hmmjit::hmm_parsing
