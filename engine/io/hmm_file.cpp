#include "io/hmm_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <string_view>
#include <utility>

#include "core/ascii.hpp"
#include "core/read_only_file.hpp"
#include "core/threads.hpp"
#include "io/c_numbers.hpp"
#include "io/hmm_parsing.hpp"

namespace hmmjit {
namespace {

using namespace hmm_parsing;

constexpr std::uint32_t kMagicA = 0xe8ededb6u;  // for 'a'; 'b' to 'd' have the next values
constexpr std::uint32_t kMagicE = 0xe8ededb0u;
constexpr std::uint32_t kMagicF = 0xe8ededbau;

char binary_version(std::uint32_t magic) {
  if (magic == kMagicE) return 'e';
  if (magic == kMagicF) return 'f';
  if (magic >= kMagicA && magic <= kMagicA + 3) return static_cast<char>('a' + (magic - kMagicA));
  return 0;
}

// The rounding to float and the C library's expf both determine the last bit of every score of the
// model.
inline float probability(double negative_log) { return ::expf(static_cast<float>(-negative_log)); }

// Removes up to `count` probabilities from the front of `*line` and returns how many.
int read_probabilities(std::string_view* line, int count, float* out) {
  static constexpr double kScale[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9};
  const char* p = line->data();
  const char* const end = p + line->size();
  int n = 0;
  for (; n < count; ++n) {
    while (p < end && Tokens::is_blank(*p)) ++p;
    if (p == end || *p == '#') break;
    const char* begin = p;
    if (*p == '*') {
      while (p < end && !Tokens::is_blank(*p)) ++p;
      out[n] = 0.0f;
      continue;
    }
    // Fast path for HMMER's own form, d.ddddd; c_atof reads all other forms.
    std::uint32_t whole = static_cast<unsigned char>(*p - '0');
    std::uint32_t digits = 0;
    int fraction = 0;
    if (whole < 10) {
      ++p;
      while (p < end && static_cast<unsigned char>(*p - '0') < 10 && whole < 1000) {
        whole = whole * 10 + static_cast<unsigned char>(*p++ - '0');
      }
      if (p < end && *p == '.') {
        ++p;
        while (p < end && static_cast<unsigned char>(*p - '0') < 10 && fraction < 9) {
          digits = digits * 10 + static_cast<unsigned char>(*p++ - '0');
          ++fraction;
        }
        if (p == end || Tokens::is_blank(*p)) {
          double exact = static_cast<double>(whole) * kScale[fraction] + digits;
          out[n] = probability(exact / kScale[fraction]);
          continue;
        }
      }
    }
    while (p < end && !Tokens::is_blank(*p)) ++p;
    std::string_view token(begin, static_cast<std::size_t>(p - begin));
    if (token.find('\0') != token.npos) break;
    out[n] = probability(c_atof(token));
  }
  line->remove_prefix(static_cast<std::size_t>(p - line->data()));
  return n;
}

class Ascii3Parser : private AsciiParser {
 public:
  Ascii3Parser(BufferedInput& input, char version)
      : AsciiParser(input, {.single_cutoff = true}), version_(version) {}

  // Starts after the line of the format tag.
  Result<Hmm> parse() {
    const auto line = [this](std::string_view tag, Tokens& tokens) {
      return header_line(tag, tokens);
    };
    HMMJIT_TRY(header(line, [this]() -> const char* {
      if (msv_ == viterbi_ && msv_ == forward_) return nullptr;
      return "some STATS lines are missing: there must be all three or none";
    }));
    HMMJIT_TRY(body());
    if (hmm_.consensus.empty()) hmm_.consensus = compute_consensus(hmm_);
    return std::move(hmm_);
  }

 private:
  Status header_line(std::string_view tag, Tokens& tokens) {
    if (tag == "ALPH") {
      std::string_view token = tokens.next();
      hmm_.alphabet = alphabet_named(token);
      if (hmm_.alphabet == nullptr) {
        return bad(fmt::format("alphabet \"{}\" is unknown (known: amino, DNA, RNA)", token));
      }
    } else if (tag == "MM") {
      return flag(tag, tokens, &mm_);
    } else if (tag == "CONS") {
      return flag(tag, tokens, &cons_);
    } else if (tag == "MAP") {
      return flag(tag, tokens, &map_);
    } else if (tag == "MAXL") {
      if (version_ < 'c') return {};
      const int length = c_atoi(tokens.next());
      if (length == 0) return bad("MAXL must not be zero");
      if (length > 0) hmm_.max_length = length;  // HMMER: -1 is none
    } else if (tag == "NSEQ") {
      if (c_atoi(tokens.next()) == 0) return bad("NSEQ must be a number other than zero");
    } else if (tag == "EFFN") {
      if (c_atof(tokens.next()) <= 0) return bad("EFFN must be a number above zero");
    } else if (tag == "STATS") {
      return statistics(tokens);
    }
    if (tag == "CKSUM") {
      std::string_view token = tokens.next();
      if (token.empty()) return bad("CKSUM lacks a number");
      if (token.front() == '+') token.remove_prefix(1);
      std::int64_t sum = 0;  // some programs write it as a signed number
      std::from_chars(token.data(), token.data() + token.size(), sum);
      hmm_.checksum = static_cast<std::uint32_t>(sum);
    }
    return {};  // DATE, COM, ... do not describe the model
  }

  Status statistics(Tokens& tokens) {
    Calibration& c = hmm_.calibration;
    if (!equal_ignoring_case(tokens.next(), "LOCAL")) return bad("STATS must be LOCAL");
    std::string_view which = tokens.next();
    std::string_view first = tokens.next();
    std::string_view second = version_ == 'a' ? first : tokens.next();
    if (second.empty()) return bad(fmt::format("STATS LOCAL {} lacks a number", which));
    const FlushToZeroScope flush;  // as HMMER does
    float a = static_cast<float>(c_atof(first)), b = static_cast<float>(c_atof(second));
    if (version_ == 'a') {  // one mu for MSV and Viterbi, one lambda for all three scores
      if (equal_ignoring_case(which, "VLAMBDA")) {
        c.msv_lambda = c.viterbi_lambda = c.forward_lambda = a;
        msv_ = true;
      } else if (equal_ignoring_case(which, "VMU")) {
        c.msv_mu = c.viterbi_mu = a;
        viterbi_ = true;
      } else if (equal_ignoring_case(which, "FTAU")) {
        c.forward_tau = a;
        forward_ = true;
      } else {
        return bad(fmt::format("STATS LOCAL {} is unknown", which));
      }
    } else if (equal_ignoring_case(which, "MSV")) {
      c.msv_mu = a, c.msv_lambda = b;
      msv_ = true;
    } else if (equal_ignoring_case(which, "VITERBI")) {
      c.viterbi_mu = a, c.viterbi_lambda = b;
      viterbi_ = true;
    } else if (equal_ignoring_case(which, "FORWARD")) {
      c.forward_tau = a, c.forward_lambda = b;
      forward_ = true;
    } else {
      return bad(fmt::format("STATS LOCAL {} is unknown", which));
    }
    return {};
  }

  Status body() {
    std::size_t likely = static_cast<std::size_t>(std::min(hmm_.M, 4096)) + 1;
    std::size_t K = static_cast<std::size_t>(hmm_.alphabet->K);
    hmm_.match.reserve(likely * K);
    hmm_.insert.reserve(likely * K);
    hmm_.transition.reserve(likely * kTransitions);

    std::string_view line;
    HMMJIT_TRY(body_line(0, &line));
    if (Tokens(line).next() == "COMPO") {
      line.remove_prefix(line.find("COMPO") + 5);
      HMMJIT_TRY(numbers(&line, hmm_.alphabet->K, hmm_.compo.data(), "composition"));
      HMMJIT_TRY(body_line(0, &line));
    }
    for (int k = 0; k <= hmm_.M; ++k) {
      grow(k);
      std::size_t row = static_cast<std::size_t>(k);
      if (k == 0) {
        hmm_.match[0] = 1.0f;
      } else {
        HMMJIT_TRY(body_line(k, &line));
        HMMJIT_TRY(match_line(k, line));
        HMMJIT_TRY(body_line(k, &line));
      }
      HMMJIT_TRY(numbers(&line, hmm_.alphabet->K, &hmm_.insert[row * K], "insert emissions"));
      HMMJIT_TRY(body_line(k, &line));
      HMMJIT_TRY(
          probabilities(&line, kTransitions, &hmm_.transition[row * kTransitions], "transitions"));
    }
    HMMJIT_TRY(terminator());
    hmm_.consensus.shrink_to_fit();
    hmm_.map.shrink_to_fit();
    return {};
  }

  Status numbers(std::string_view* line, int count, float* out, const char* what) const {
    const int n = read_probabilities(line, count, out);
    if (n == count) return {};
    return bad(fmt::format("node {}: {} {}, {} needed", node_, n, what, count));
  }

  Status probabilities(std::string_view* line, int count, float* out, const char* what) const {
    HMMJIT_TRY(numbers(line, count, out, what));
    if (are_probabilities({out, static_cast<std::size_t>(count)})) return {};
    return bad(fmt::format("node {}: {} that are no probabilities", node_, what));
  }

  Status match_line(int k, std::string_view line) {
    const std::string_view number = Tokens(line).next();
    HMMJIT_TRY(expect_node(k, number));
    line.remove_prefix(static_cast<std::size_t>(number.end() - line.begin()));
    const int K = hmm_.alphabet->K;
    HMMJIT_TRY(
        probabilities(&line, K, &hmm_.match[static_cast<std::size_t>(k) * K], "match emissions"));
    Tokens tokens(line);
    std::string_view map = tokens.next();
    std::string_view cons = version_ >= 'e' ? tokens.next() : "-";
    std::string_view rf = tokens.next();
    std::string_view mm = version_ >= 'f' ? tokens.next() : "-";
    std::string_view cs = tokens.next();
    if (map.empty() || cons.empty() || rf.empty() || mm.empty() || cs.empty()) {
      return bad(fmt::format("node {}: an annotation column is missing", k));
    }
    if (map_) {
      if (k == 1) hmm_.map.push_back(0);
      hmm_.map.push_back(c_atoi(map));
    }
    if (cons_ && version_ >= 'e') hmm_.consensus.push_back(cons[0]);
    if (rf_) hmm_.rf.push_back(rf[0]);
    if (mm_ && version_ >= 'f') hmm_.mm.push_back(mm[0]);
    if (cs_) hmm_.cs.push_back(cs[0]);
    return {};
  }

  char version_;
  bool mm_ = false, cons_ = false, map_ = false;
  bool msv_ = false, viterbi_ = false, forward_ = false;  // STATS lines seen
};

constexpr const char* kPressAgain =
    "press the database again with hmmpress -f, or remove the .h3m file";

bool readable(const std::string& path) { return ::access(path.c_str(), R_OK) == 0; }
bool present(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

}  // namespace

std::unexpected<Error> HmmReader::unknown_tag(std::string_view tag) const {
  std::string shown;
  for (char c : tag.substr(0, 24)) shown += c >= ' ' && c <= '~' ? c : '?';
  std::string remedy = "give a profile file: HMMER3/a to HMMER3/f or HMMER2.0";
  if (foreign_) remedy = fmt::format("{}: {}", foreign_->what, foreign_->remedy);
  return fail(ErrorCode::kInput, fmt::format("format tag \"{}\" is not recognised", shown),
              tag.starts_with("#") ? input_.name() : input_.where(), remedy);
}

Status HmmReader::detect() {
  HMMJIT_ASSIGN(std::string_view head, input_.peek());
  if (!head.starts_with("HMMER")) foreign_ = recognise_other_file(head);
  if (head.size() >= 4 && (static_cast<unsigned char>(head[3]) & 0x80u) != 0) {
    // Binary files have their writer's byte order. The magic number reveals big-endian files, which
    // are rejected.
    std::uint32_t magic;
    std::memcpy(&magic, head.data(), 4);
    version_ = binary_version(magic);
    if (version_ != 0) {
      input_.skip(4);
      format_ = HmmFormat::kBinary3;
      tag_read_ = true;
      return {};
    }
    if (magic >= 0xe8ededb1u && magic <= 0xe8ededb5u) {
      return fail(ErrorCode::kInput, "binary HMMER1 or HMMER2 profiles are not supported",
                  input_.name(), "convert the file to ASCII with its own hmmconvert");
    }
  }
  std::string_view line;
  bool stockholm = head.starts_with("# STOCKHOLM");
  HMMJIT_ASSIGN(bool more, data_line(input_, &line));
  if (!more) {
    if (stockholm) return unknown_tag("# STOCKHOLM");
    return fail(ErrorCode::kInput, "the file holds no profile: it is empty", input_.name(),
                "fetch or build it again");
  }
  std::string_view tag = Tokens(line).next();
  if (tag == "HMMER2.0") {
    format_ = HmmFormat::kHmmer2;
    version_ = '2';
  } else if (tag.size() == 8 && tag.starts_with("HMMER3/") && tag[7] >= 'a' && tag[7] <= 'f') {
    format_ = HmmFormat::kAscii3;
    version_ = tag[7];
  } else {
    return unknown_tag(stockholm ? "# STOCKHOLM" : tag);
  }
  tag_read_ = true;
  return {};
}

Result<std::optional<Hmm>> HmmReader::next_ascii() {
  const FloatControlScope scope(keeps_subnormals_ ? FloatControl{}
                                                  : FloatControl{.mode = kFlushToZero});
  if (!tag_read_) {
    std::string_view line;
    HMMJIT_ASSIGN(bool more, data_line(input_, &line));
    if (!more) return std::nullopt;
    std::string_view tag = Tokens(line).next();
    bool same = format_ == HmmFormat::kHmmer2
                    ? tag == "HMMER2.0"
                    : tag.size() == 8 && tag.starts_with("HMMER3/") && tag[7] == version_;
    if (!same) {
      if (tag.starts_with("HMMER")) {
        return fail(ErrorCode::kInput,
                    fmt::format("a {} model follows models of another format version", tag),
                    input_.where(), "convert the file to one version with hmmconvert");
      }
      return unknown_tag(tag);
    }
  }
  tag_read_ = false;
  if (format_ == HmmFormat::kHmmer2) {
    HMMJIT_ASSIGN(Hmm hmm, read_version2(input_));
    return std::optional<Hmm>(std::move(hmm));
  }
  HMMJIT_ASSIGN(Hmm hmm, Ascii3Parser(input_, version_).parse());
  return std::optional<Hmm>(std::move(hmm));
}

Result<std::optional<Hmm>> HmmReader::next_binary(bool probabilities) {
  if (!tag_read_) {
    HMMJIT_ASSIGN(std::string_view head, input_.peek());
    if (head.empty()) return std::nullopt;
    std::uint32_t magic;
    HMMJIT_ASSIGN(bool whole, input_.read(&magic, sizeof magic));
    if (!whole) return truncated(input_, {}, "in its first bytes");
    if (binary_version(magic) != version_) {
      return fail(ErrorCode::kInput, "no model of the same format version where one should begin",
                  input_.name(), "convert the file to one version with hmmconvert");
    }
  }
  tag_read_ = false;
  HMMJIT_ASSIGN(Hmm hmm, read_binary(input_, version_, probabilities));
  return std::optional<Hmm>(std::move(hmm));
}

Result<HmmReader> HmmReader::open(const std::string& path) {
  std::string chosen = path;
  if (path != "-" && !path.ends_with(".gz") && present(path + ".h3m")) {
    for (const char* suffix : kPressedSuffixes) {
      if (!readable(path + suffix)) {
        return fail(
            ErrorCode::kInput,
            fmt::format("{}.h3m exists, but {}{} is missing or unreadable", path, path, suffix),
            path, kPressAgain);
      }
    }
    // hmmpress writes the index last: without one it has not ended, and models are missing.
    HMMJIT_ASSIGN(const ReadOnlyFile index, ReadOnlyFile::open(path + ".h3i"));
    constexpr std::string_view kMagic = "\xd3\xd3\xc9\xb3";  // Easel's SSI 3.0
    std::string magic(std::min<std::uint64_t>(index.size(), kMagic.size()), '\0');
    HMMJIT_TRY(index.read(0, magic));
    if (magic != kMagic)
      return fail(ErrorCode::kInput, fmt::format("{}.h3i is no index of a pressed database", path),
                  path, kPressAgain);
    chosen = path + ".h3m";
  }
  auto source = open_byte_source(chosen);
  if (!source) return std::unexpected(source.error());
  return open(std::move(*source));
}

Result<HmmReader> HmmReader::open(std::unique_ptr<ByteSource> source) {
  HmmReader reader(std::move(source));
  HMMJIT_TRY(reader.detect());
  return reader;
}

Result<std::optional<Hmm>> HmmReader::next() {
  HMMJIT_ASSIGN(std::optional<Hmm> hmm,
                format_ == HmmFormat::kBinary3 ? next_binary() : next_ascii());
  if (hmm) {
    if (alphabet_ == nullptr) alphabet_ = hmm->alphabet;
    if (alphabet_ != hmm->alphabet) {
      return fail(ErrorCode::kInput,
                  fmt::format("model {} is {}, but the models before it are {}", hmm->name,
                              hmm->alphabet->name, alphabet_->name),
                  name(), "split the file by alphabet");
    }
  }
  return hmm;
}

Result<std::size_t> HmmReader::count() {
  std::string_view line;
  bool body = false;  // a header may have any line, "//" among them
  for (std::size_t models = 0;;) {
    if (format_ == HmmFormat::kBinary3) {
      HMMJIT_ASSIGN(const std::optional<Hmm> hmm, next_binary(false));
      if (!hmm) return models;
      ++models;
    } else {
      HMMJIT_ASSIGN(const bool more, input_.line(&line));
      if (!more) return models;
      const std::string_view first = Tokens(line).next();
      if (first == "HMM") body = true;
      if (first == "//") models += std::exchange(body, false);
    }
  }
}

}  // namespace hmmjit
