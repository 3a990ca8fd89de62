// Random FASTA with odd line wrapping: the reader returns the targets that were written, for any
// chunking, block size and wrapping.
#include <gtest/gtest.h>

#include <random>

#include "tests/unit/io/io_support.hpp"

namespace hmmjit::io_test {
namespace {

struct Sample {
  std::string text;
  std::vector<Target> targets;
};

Sample random_fasta(std::mt19937& random) {
  auto below = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
  const std::string_view residues = "ACDEFGHIKLMNPQRSTVWYBJZOUX*_.~";
  const std::string_view blanks[] = {"", " ", "\t", " \t ", "   "};
  const std::string_view line_ends[] = {"\n", "\r\n", "\r", "\n\n", " \n\t\r\n"};
  std::string_view line_end = line_ends[below(5)];
  Sample sample;
  for (unsigned i = 0; i < below(3); ++i) sample.text += "\n \t";
  unsigned count = 1 + below(12);
  for (unsigned i = 0; i < count; ++i) {
    Target t;
    unsigned name_length = 1 + (below(20) == 0 ? below(5000) : below(20));
    for (unsigned j = 0; j < name_length; ++j) t.name += static_cast<char>('!' + below(94));
    unsigned words = below(4);
    for (unsigned j = 0; j < words; ++j) {
      if (j > 0) t.description += ' ';
      t.description.append(1 + below(30), 'd').append("\xc3\xa9>");
    }
    sample.text.append(">").append(blanks[below(5)]).append(t.name);
    if (!t.description.empty()) sample.text.append(" ").append(t.description);
    if (below(5) == 0) sample.text.append(t.description.empty() ? " \x01more" : "\x01more");
    sample.text += below(2) == 0 ? "\n" : "\r\n";
    unsigned length = below(10) == 0 ? below(40000) : below(300);
    unsigned width = 1 + (below(3) == 0 ? below(3) : below(100));
    if (below(10) == 0) width = 1000000;
    for (unsigned j = 0; j < length; ++j) {
      char c = residues[below(10) == 0 ? below(30) : below(20)];
      t.residues += c == '_' || c == '.' ? '-' : c;
      sample.text += below(3) == 0 && c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
      if ((j + 1) % width == 0) sample.text += line_end;
      if (below(500) == 0) sample.text += blanks[below(5)];
    }
    // The next record may start in the middle of a line.
    if (i + 1 < count && below(4) != 0) sample.text += "\n";
    sample.targets.push_back(std::move(t));
  }
  return sample;
}

void expect_targets(const ReadResult& got, const Sample& sample, const char* how) {
  ASSERT_EQ(got.error, "") << how;
  ASSERT_EQ(got.targets.size(), sample.targets.size()) << how;
  for (std::size_t i = 0; i < got.targets.size(); ++i) {
    ASSERT_EQ(got.targets[i], sample.targets[i]) << how << ", target " << i;
  }
}

TEST(FastaProperty, WhatIsWrittenIsRead) {
  TemporaryFolder folder;
  const unsigned seed = 20261121;
  std::mt19937 random(seed);
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE("seed " + std::to_string(seed) + " round " + std::to_string(round));
    Sample sample = random_fasta(random);
    for (std::size_t chunk : {std::size_t{1}, std::size_t{13}, std::size_t{64}, std::size_t{4096},
                              std::size_t{1} << 20}) {
      if (chunk < 64 && sample.text.size() > 20000) continue;
      for (std::uint64_t block : {std::uint64_t{1}, std::uint64_t{500}, std::uint64_t{1} << 40}) {
        expect_targets(read_text(sample.text, SequenceFormat::kFasta, "text", chunk, block), sample,
                       "memory");
      }
    }
    const std::pair<const char*, std::string> files[] = {
        {"x.txt", sample.text},
        {"x.gz", gzip(sample.text)},
        {"x2.gz", gzip(sample.text.substr(0, sample.text.size() / 2)) +
                      gzip(sample.text.substr(sample.text.size() / 2))},
        {"x.zst", zstd(sample.text)}};
    for (const auto& [name, bytes] : files) {
      expect_targets(
          read_targets(SequenceReader::open(folder.write(name, bytes), {amino_alphabet()})), sample,
          name);
    }
  }
}

// A second implementation of the reader's rules, character by character: an oracle for any bytes.
ReadResult simple_fasta(const std::string& text) {
  ReadResult result;
  enum { kStart, kHeader, kSequence } state = kStart;
  std::string header;
  auto space = [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); };
  auto end_header = [&] {
    if (header.find('\0') != header.npos) return false;
    std::size_t i = header.find_first_not_of(" \t");
    if (i == header.npos || space(header[i])) return false;
    std::size_t j = i;
    while (j < header.size() && !space(header[j])) ++j;
    std::size_t k = std::min(header.find_first_not_of(" \t", j), header.size());
    std::string description = header.substr(k);
    result.targets.push_back(
        {header.substr(i, j - i), "", description.substr(0, description.find('\x01')), ""});
    header.clear();
    return true;
  };
  for (char c : text) {
    if (state == kStart) {
      if (space(c)) continue;
      if (c != '>') break;
      state = kHeader;
    } else if (state == kHeader) {
      if (c != '\n' && c != '\r') {
        header += c;
      } else if (!end_header()) {
        result.error = "name";
        return result;
      } else {
        state = kSequence;
      }
    } else if (c == '>') {
      state = kHeader;
    } else if (c != ' ' && c != '\t' && c != '\r' && c != '\n') {
      Residue code = amino_alphabet().digit[static_cast<unsigned char>(c)];
      if (code == kInvalidCode || c == '-') {
        result.error = "character";
        result.targets.pop_back();
        return result;
      }
      result.targets.back().residues += amino_alphabet().symbols[code];
    }
  }
  if (state == kStart && text.find_first_not_of(" \t\n\v\f\r") != text.npos) result.error = "start";
  if (state == kHeader && !end_header()) result.error = "name";
  return result;
}

TEST(FastaProperty, ArbitraryBytesAreReadAsTheRulesSay) {
  std::mt19937 random(99);
  const std::string_view likely = "ACDEFGHIKLMNPQRSTVWYacd>>>\n\n\n\r \t*_.~x";
  for (int round = 0; round < 3000; ++round) {
    std::string text(random() % 4 == 0 ? 0 : 1, '>');
    std::size_t length = random() % 400;
    std::size_t odd = 1 + random() % 400;
    for (std::size_t i = 0; i < length; ++i) {
      text += random() % odd == 0 ? static_cast<char>(random()) : likely[random() % likely.size()];
    }
    ReadResult expected = simple_fasta(text);
    ReadResult got =
        read_text(text, SequenceFormat::kFasta, "text", 1 + random() % 500, 1 + random() % 1000);
    ASSERT_EQ(got.error.empty(), expected.error.empty())
        << round << ": " << got.error << " / " << expected.error;
    ASSERT_EQ(got.targets.size(), expected.targets.size()) << round;
    for (std::size_t i = 0; i < got.targets.size(); ++i) {
      ASSERT_EQ(got.targets[i], expected.targets[i]) << round;
    }
  }
}

}  // namespace
}  // namespace hmmjit::io_test
