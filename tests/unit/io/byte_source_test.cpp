#include "io/byte_source.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>

#include <atomic>
#include <random>
#include <thread>

#include "tests/unit/io/io_support.hpp"

namespace hmmjit::io_test {
namespace {

using ::testing::HasSubstr;

struct Bytes {
  std::string data, error;
};

Bytes drain(ByteSource& source) {
  Bytes result;
  while (true) {
    auto chunk = source.next();
    if (!chunk) {
      result.error = chunk.error().to_string();
      return result;
    }
    if (chunk->empty()) return result;
    result.data.append(chunk->data(), chunk->size());
  }
}

Bytes drain(const std::string& path) {
  auto source = open_byte_source(path);
  if (!source) return {{}, source.error().to_string()};
  return drain(**source);
}

std::string random_text(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::string text(size, ' ');
  for (char& c : text) c = static_cast<char>('A' + random() % 24);
  return text;
}

TEST(ByteSource, EveryWrappingGivesTheSameBytes) {
  TemporaryFolder folder;
  // Larger than what is decompressed ahead, and not a multiple of a chunk.
  std::string text = random_text((std::size_t{5} << 20) + 12345, 1);
  std::string a = text.substr(0, 2000000), b = text.substr(2000000);
  std::string bgzf;  // many small members, the last one empty
  for (std::size_t i = 0; i < text.size(); i += 65280) bgzf += gzip(text.substr(i, 65280), 1);
  bgzf += gzip("");
  std::string skippable("\x50\x2a\x4d\x18\x03\x00\x00\x00xyz", 11);
  const std::pair<const char*, std::string> cases[] = {
      {"plain", text},
      {"one.gz", gzip(text, 1)},
      {"no_suffix", gzip(text, 1)},
      {"members.gz", gzip(a, 1) + gzip("") + gzip(b, 1)},
      {"bgzf.gz", bgzf},
      {"padded.gz", gzip(text, 1) + std::string(700, '\0')},
      {"one.zst", zstd(text)},
      {"frames.zst", zstd(a) + zstd("") + skippable + zstd(b)},
      {"skippable_first.zst", skippable + zstd(text)},
  };
  for (const auto& [name, bytes] : cases) {
    SCOPED_TRACE(name);
    auto source = open_byte_source(folder.write(name, bytes));
    ASSERT_TRUE(source);
    for (int pass = 0; pass < 2; ++pass) {
      Bytes got = drain(**source);
      EXPECT_EQ(got.error, "");
      EXPECT_TRUE(got.data == text);
      ASSERT_TRUE((*source)->rewind());
    }
    for (std::size_t chunk : {std::size_t{5000}, std::size_t{65536}}) {
      auto memory = open_memory_source(name, bytes, chunk);
      ASSERT_TRUE(memory);
      EXPECT_TRUE(drain(**memory).data == text);
    }
  }
}

// Other threads decompress ahead while the reader reads, waits and restarts.
TEST(ByteSource, DecodingAheadChangesNoByte) {
  const std::string text = random_text((std::size_t{3} << 20) + 77, 8);
  for (const std::string& bytes : {gzip(text, 1), zstd(text), text}) {
    auto source = open_memory_source("x", bytes, 4096);
    ASSERT_TRUE(source);
    const bool compressed = (*source)->compression() != Compression::kNone;
    // decode_ahead() returns true until the ring is full.
    EXPECT_EQ((*source)->decode_ahead(), compressed);
    int pieces = 1;
    while ((*source)->decode_ahead()) ++pieces;
    EXPECT_LT(pieces, 10);
    std::atomic<bool> done{false};
    std::vector<std::thread> helpers;
    for (int i = 0; i < 2; ++i) {
      helpers.emplace_back([&] {
        while (!done) (*source)->decode_ahead();
      });
    }
    for (int pass = 0; pass < 3; ++pass) {
      for (int chunk = 0; chunk < 20; ++chunk) EXPECT_TRUE((*source)->next());
      EXPECT_TRUE((*source)->rewind());
      EXPECT_TRUE(drain(**source).data == text);
      EXPECT_TRUE((*source)->rewind());
    }
    done = true;
    for (std::thread& helper : helpers) helper.join();
  }
}

TEST(ByteSource, RewindAfterAnErrorStartsAgain) {
  const std::string text = random_text(std::size_t{1} << 20, 4);
  std::string bytes = gzip(text, 1);
  auto source = open_memory_source("x", bytes, 4096);
  ASSERT_TRUE(source);
  bytes.back() ^= 1;
  EXPECT_NE(drain(**source).error, "");
  bytes.back() ^= 1;
  ASSERT_TRUE((*source)->rewind());
  const Bytes got = drain(**source);
  EXPECT_EQ(got.error, "");
  EXPECT_TRUE(got.data == text);
}

TEST(ByteSource, TruncationIsAnErrorAtEveryCut) {
  TemporaryFolder folder;
  std::string text = random_text(300, 3);
  std::string compressed = gzip(text) + gzip(text);
  std::size_t first = gzip(text).size();
  for (std::size_t cut = 3; cut < compressed.size(); ++cut) {
    auto source = open_memory_source("x", std::span(compressed).first(cut), 128);
    ASSERT_TRUE(source);
    Bytes got = drain(**source);
    if (cut == first) {
      EXPECT_EQ(got.error, "");  // a complete member
    } else {
      EXPECT_THAT(got.error, HasSubstr("gzip data ends early")) << cut;
    }
  }
  compressed = zstd(text) + zstd(text);
  first = zstd(text).size();
  for (std::size_t cut = 4; cut < compressed.size(); ++cut) {
    auto source = open_memory_source("x", std::span(compressed).first(cut), 128);
    ASSERT_TRUE(source);
    EXPECT_EQ(drain(**source).error.empty(), cut == first) << cut;
  }
}

TEST(ByteSource, DamageIsAnError) {
  std::string text = random_text(5000, 4);
  for (const std::string& good : {gzip(text), zstd(text)}) {
    std::string bad = good;
    bad[bad.size() / 2] = static_cast<char>(bad[bad.size() / 2] ^ 0x55);
    auto source = open_memory_source("x", bad);
    ASSERT_TRUE(source);
    // zlib and zstd check sums or structure; the reader must not take damage for the end.
    Bytes got = drain(**source);
    if (good == gzip(text)) {
      EXPECT_THAT(got.error, HasSubstr("corrupt gzip data"));
    }
    EXPECT_TRUE(!got.error.empty() || got.data != text);
  }
  std::string trailing = gzip(text) + "trailing";
  auto source = open_memory_source("x", trailing);
  ASSERT_TRUE(source);
  EXPECT_THAT(drain(**source).error, HasSubstr("not gzip data follow"));
}

TEST(ByteSource, NamesMustNotLie) {
  TemporaryFolder folder;
  EXPECT_THAT(drain(folder.write("a.gz", "plain")).error, HasSubstr("not gzip"));
  EXPECT_THAT(drain(folder.write("a.zst", "plain")).error, HasSubstr("not zstd"));
  EXPECT_EQ(drain(folder.write("empty.gz", "")).error, "");
  EXPECT_THAT(drain(folder.path().string()).error, HasSubstr("is a directory"));
}

TEST(ByteSource, StandardInputIsReadFromPipesAndFiles) {
  TemporaryFolder folder;
  std::string text = random_text(3000000, 5);
  int saved = ::dup(STDIN_FILENO);
  ASSERT_GE(saved, 0);
  for (const std::string& bytes : {text, gzip(text, 1), zstd(text)}) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    ::dup2(ends[0], STDIN_FILENO);
    ::close(ends[0]);
    std::thread writer([&] {
      std::size_t sent = 0;
      while (sent < bytes.size()) {
        ssize_t n = ::write(ends[1], bytes.data() + sent,
                            std::min<std::size_t>(bytes.size() - sent, 70001));
        if (n <= 0) break;
        sent += static_cast<std::size_t>(n);
      }
      ::close(ends[1]);
    });
    auto source = open_byte_source("-");
    ASSERT_TRUE(source);
    Bytes got = drain(**source);
    writer.join();
    EXPECT_EQ(got.error, "");
    EXPECT_TRUE(got.data == text);
    EXPECT_FALSE((*source)->rewindable());
    auto again = (*source)->rewind();
    ASSERT_FALSE(again);
    EXPECT_THAT(again.error().to_string(), HasSubstr("standard input: cannot be read a second"));

    int file = ::open(folder.write("stdin", bytes).c_str(), O_RDONLY);
    ::dup2(file, STDIN_FILENO);
    ::close(file);
    source = open_byte_source("-");
    ASSERT_TRUE(source);
    EXPECT_TRUE(drain(**source).data == text);
    ASSERT_TRUE((*source)->rewind());
    EXPECT_TRUE(drain(**source).data == text);
  }
  ::dup2(saved, STDIN_FILENO);
  ::close(saved);
}

TEST(BufferedInput, LinesHaveALimit) {
  const std::string text =
      "one\n" + std::string(20, 'x') + "\nthree\n" + std::string(21, 'y') + "\n";
  for (const std::size_t chunk : {std::size_t{1}, std::size_t{7}, std::size_t{1000}}) {
    auto source = open_memory_source("text", text, chunk);
    ASSERT_TRUE(source);
    BufferedInput input(*std::move(source));
    input.limit_lines(20);
    std::string_view line;
    for (const std::string& wanted :
         {std::string("one"), std::string(20, 'x'), std::string("three")}) {
      const auto more = input.line(&line);
      ASSERT_TRUE(more && *more);
      EXPECT_EQ(line, wanted);
    }
    const auto more = input.line(&line);
    ASSERT_FALSE(more);
    EXPECT_EQ(more.error().code, ErrorCode::kInput);
    EXPECT_EQ(more.error().to_string().substr(0, 36), "text:4: a line of more than 20 bytes");
  }
}

}  // namespace
}  // namespace hmmjit::io_test
