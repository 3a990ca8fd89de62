#include "cache/entry_format.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "cache_fixture.hpp"
#include "core/coding.hpp"

namespace hmmjit::cache {
namespace {

using ::testing::HasSubstr;

std::string reseal(std::string bytes) {
  bytes.resize(bytes.size() - 16);
  return bytes + digest_of(bytes).bytes();
}

TEST(EntryFormat, SmallestEntryRoundTrips) {
  Entry entry;
  entry.payload = "x";
  const auto bytes = encode_entry(CacheKey(), entry);
  ASSERT_TRUE(bytes);
  EXPECT_EQ(decode_entry(*bytes, Attachments::kLoad)->entry, entry);
}

// Acceptance test C for bytes: no flip and no truncation is accepted.
TEST(EntryFormat, EveryFlippedByteIsDetected) {
  const CacheKey key = make_key();
  const std::string bytes = *encode_entry(key, make_entry(300));
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    for (const int mask : {0x01, 0x80, 0xff}) {
      std::string damaged = bytes;
      damaged[i] = static_cast<char>(damaged[i] ^ mask);
      EXPECT_FALSE(decode_entry(damaged, Attachments::kLoad)) << "byte " << i;
      EXPECT_FALSE(decode_entry_for(damaged, key, Attachments::kSkip)) << "byte " << i;
    }
  }
}

TEST(EntryFormat, EveryTruncationAndExtensionIsDetected) {
  const CacheKey key = make_key();
  const std::string bytes = *encode_entry(key, make_entry(300));
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(decode_entry(bytes.substr(0, length), Attachments::kLoad)) << length;
  }
  EXPECT_FALSE(decode_entry(bytes + '\0', Attachments::kLoad));
  EXPECT_FALSE(decode_entry_for(bytes + bytes, key, Attachments::kLoad));
}

// Acceptance test D for bytes.
TEST(EntryFormat, AnotherKeyIsNeverAccepted) {
  const CacheKey key = make_key();
  const CacheKey other = make_key("other source");
  const std::string bytes = *encode_entry(other, make_entry());
  const auto plain = decode_entry_for(bytes, key, Attachments::kSkip);
  ASSERT_FALSE(plain);
  EXPECT_NE(plain.error().where, kKeyCollides);
  // A forger writes the expected digest into the header and seals the file again.
  std::string forged = bytes;
  forged.replace(24, 16, key.digest().bytes());
  forged = reseal(forged);
  EXPECT_FALSE(decode_entry_for(forged, key, Attachments::kSkip));
  EXPECT_FALSE(decode_entry(forged, Attachments::kSkip));
}

TEST(EntryFormat, OtherVersionsAreTold) {
  std::string bytes = *encode_entry(make_key(), make_entry());
  EXPECT_FALSE(is_other_version(bytes));
  bytes[8] = 2;
  bytes = reseal(bytes);
  EXPECT_TRUE(is_other_version(bytes));
  const auto decoded = decode_entry(bytes, Attachments::kLoad);
  ASSERT_FALSE(decoded);
  EXPECT_THAT(decoded.error().message, HasSubstr("format version 2"));
}

// Acceptance test P: deterministic mutations with valid checksums, which reach the reader behind
// the check. Accepted entries must be well-formed.
TEST(EntryFormat, SealedMutationsNeverBreakTheReader) {
  std::mt19937_64 random(20240601);
  const CacheKey key = make_key();
  const std::string bytes = *encode_entry(key, make_entry(200));
  int rejected = 0;
  int accepted = 0;
  for (int round = 0; round < 60000; ++round) {
    std::string mutant = bytes;
    const int changes = 1 + static_cast<int>(random() % 3);
    for (int i = 0; i < changes; ++i) {
      const std::size_t at = random() % mutant.size();
      switch (random() % 5) {
        case 0:
          mutant[at] = static_cast<char>(random());
          break;
        case 1:
          mutant.erase(at, random() % 40);
          break;
        case 2:
          mutant.insert(at, noise(random() % 40, random()));
          break;
        case 3:  // extreme 64-bit values for a length
          for (std::size_t j = 0; j < 8 && at + j < mutant.size(); ++j) {
            mutant[at + j] = static_cast<char>(j == 7 ? 0x7f : 0xff);
          }
          break;
        default:
          mutant[at] = static_cast<char>(mutant[at] ^ (1 << (random() % 8)));
      }
    }
    if (mutant.size() < 60) continue;
    std::string total;
    put_bytes(total, static_cast<std::uint64_t>(mutant.size()));
    mutant.replace(16, 8, total);
    mutant = reseal(mutant);
    const auto decoded = decode_entry(mutant, Attachments::kLoad);
    if (!decoded) {
      ++rejected;
      continue;
    }
    ++accepted;
    EXPECT_FALSE(decoded->entry.payload.empty());
    EXPECT_TRUE(encode_entry(decoded->key, decoded->entry));
    if (!(decoded->key == key)) {
      EXPECT_FALSE(decode_entry_for(mutant, key, Attachments::kSkip));
    }
  }
  EXPECT_GT(rejected, 10000);
  EXPECT_GT(accepted, 100);  // mutated payloads, protected by the checksum only
}

TEST(EntryFormat, NoiseIsRejected) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    EXPECT_FALSE(decode_entry(noise(seed % 300, seed), Attachments::kLoad));
  }
}

// A header may claim any size; the reader must not allocate it.
TEST(EntryFormat, ForgedSizesAreRefused) {
  const std::string bytes = *encode_entry(make_key(std::string(5000, 's')), make_entry(100));
  // First section: kind, encoding, name length (u16), reserved (u32), stored (u64), raw (u64).
  const std::size_t raw_at = 40 + 1 + 1 + 2 + 4 + 8;
  ASSERT_EQ(bytes[41], 1) << "the key record is expected to be compressed";
  for (const std::uint64_t size :
       {std::uint64_t{1} << 27, std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
    std::string forged = bytes;
    std::string field;
    put_bytes(field, size);
    forged.replace(raw_at, 8, field);
    EXPECT_FALSE(decode_entry(reseal(forged), Attachments::kLoad)) << size;
  }
}

}  // namespace
}  // namespace hmmjit::cache
