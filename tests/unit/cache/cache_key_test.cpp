#include "cache/cache_key.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "cache_fixture.hpp"

namespace hmmjit::cache {
namespace {

using ::testing::HasSubstr;

// Acceptance test G: each component alone changes the key, and explain names exactly it.
TEST(CacheKey, EveryComponentAloneChangesTheKeyAndIsNamed) {
  const CacheKey base = make_key();
  ASSERT_GE(base.components().size(), 8u);
  std::set<Digest> digests = {base.digest()};
  for (std::size_t changed = 0; changed < base.components().size(); ++changed) {
    // The schema is set by the constructor: change it through the record.
    std::string record = base.record();
    const auto& target = base.components()[changed];
    CacheKey other;
    if (changed == 0) {
      const std::size_t at = record.find(target.value, 4 + target.name.size());
      record[at] = '9';
      auto parsed = CacheKey::from_record(record);
      ASSERT_TRUE(parsed);
      other = *parsed;
    } else {
      for (std::size_t i = 1; i < base.components().size(); ++i) {
        const auto& [name, value] = base.components()[i];
        other.add(name, i == changed ? value + "x" : value);
      }
    }
    EXPECT_FALSE(other == base);
    EXPECT_TRUE(digests.insert(other.digest()).second);
    const auto differences = explain(base, other);
    ASSERT_EQ(differences.size(), 1u) << target.name;
    EXPECT_EQ(differences[0].component, target.name);
    EXPECT_THAT(differences[0].detail, HasSubstr("became"));
    EXPECT_EQ(differences[0].first, digest_of(target.value));
    EXPECT_NE(differences[0].second, differences[0].first);
  }
}

TEST(CacheKey, ExplainNamesAddedRemovedAndMovedComponents) {
  CacheKey base, added, moved;
  base.add("source", "s").add("target", "sm_80");
  added.add("source", "s").add("target", "sm_80").add("names", "k");
  moved.add("target", "sm_80").add("source", "s");
  ASSERT_EQ(explain(base, added).size(), 1u);
  EXPECT_EQ(explain(base, added)[0].detail, "'k' was added");
  EXPECT_EQ(explain(base, added)[0].component, "names");
  EXPECT_EQ(explain(added, base)[0].detail, "'k' was removed");
  ASSERT_EQ(explain(base, moved).size(), 1u);
  EXPECT_THAT(explain(base, moved)[0].detail, HasSubstr("order changed"));
  EXPECT_NE(base.digest(), moved.digest());
  EXPECT_TRUE(explain(base, base).empty());
}

TEST(CacheKey, ExplainOfALongValueNamesTheLine) {
  std::string source;
  for (int i = 1; i <= 50; ++i) source += "int line_" + std::to_string(i) + ";\n";
  std::string edited = source;
  edited.replace(edited.find("line_37"), 7, "edit_37");
  const std::string text = to_string(explain(make_key(source), make_key(edited)));
  EXPECT_THAT(text, HasSubstr("source: from line 37 on"));
  EXPECT_THAT(text, HasSubstr("int edit_37;"));
}

TEST(CacheKey, LengthsKeepNeighboursApart) {
  CacheKey a, b;
  a.add("x", "1").add("y", "2");
  b.add("x", "1y2").add("y", "");
  EXPECT_NE(a.record(), b.record());
  EXPECT_NE(a.digest(), b.digest());
}

TEST(CacheKey, RecordRoundTripsAndRejectsDamage) {
  const CacheKey key = make_key(std::string("zero\0byte", 9));
  const auto parsed = CacheKey::from_record(key.record());
  ASSERT_TRUE(parsed);
  EXPECT_TRUE(*parsed == key);
  EXPECT_EQ(parsed->digest(), key.digest());
  for (std::size_t length = 0; length < key.record().size(); ++length) {
    const auto cut = CacheKey::from_record(std::string_view(key.record()).substr(0, length));
    // A cut between two components leaves a valid record of another key.
    if (cut) {
      EXPECT_NE(cut->digest(), key.digest());
    }
  }
  EXPECT_FALSE(CacheKey::from_record(""));
}

TEST(CacheKey, RepeatedNamesMakeAKeyInvalid) {
  CacheKey key;
  key.add("source", "a");
  EXPECT_TRUE(key.valid());
  key.add("source", "b");
  EXPECT_FALSE(key.valid());
  EXPECT_FALSE(CacheKey::from_record(key.record()));
  EXPECT_FALSE(encode_entry(key, make_entry()));
}

TEST(Digest, HexAndBytesRoundTrip) {
  const Digest digest = digest_of("hmmjit");
  EXPECT_EQ(digest.hex().size(), 32u);
  EXPECT_EQ(Digest::from_hex(digest.hex()), digest);
  EXPECT_EQ(Digest::from_bytes(digest.bytes()), digest);
  EXPECT_FALSE(Digest::from_hex("xyz"));
  EXPECT_FALSE(Digest::from_hex(std::string(32, 'g')));
  // The published XXH3-128 value of no bytes: names must not change with the library version.
  EXPECT_EQ(digest_of("").hex(), "99aa06d3014798d86001c324468d497f");
  DigestStream stream;
  stream.update("hmm");
  stream.update("jit");
  EXPECT_EQ(stream.value(), digest);
}

}  // namespace
}  // namespace hmmjit::cache
