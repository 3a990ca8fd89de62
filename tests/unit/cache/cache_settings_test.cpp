#include "cache/cache_settings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace hmmjit::cache {
namespace {

using ::testing::HasSubstr;

Result<Settings> from(const std::map<std::string, std::string>& environment) {
  return settings_from_environment([&](const char* name) -> const char* {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}

TEST(CacheSettings, FolderFollowsTheXdgSpecification) {
  EXPECT_EQ(from({{"HOME", "/home/u"}})->directory, "/home/u/.cache/hmmjit");
  EXPECT_EQ(from({{"HOME", "/home/u"}, {"XDG_CACHE_HOME", "/var/x"}})->directory, "/var/x/hmmjit");
  EXPECT_EQ(from({{"HOME", "/home/u"}, {"XDG_CACHE_HOME", "relative"}})->directory,
            "/home/u/.cache/hmmjit");
  EXPECT_EQ(from({{"HOME", "/home/u"}, {"HMMJIT_CACHE_DIR", "/scratch/k/"}})->directory,
            "/scratch/k");
  EXPECT_EQ(from({})->directory, "") << "no HOME: no folder, never a shared temporary one";
  EXPECT_EQ(from({{"HOME", "relative"}})->directory, "");
}

TEST(CacheSettings, EveryVariableIsRead) {
  const auto settings = from({{"HMMJIT_CACHE_DIR", "/a"},
                              {"HMMJIT_CACHE_SYSTEM_DIR", "/b"},
                              {"HMMJIT_CACHE_MODE", "strict"},
                              {"HMMJIT_CACHE_MAX_SIZE", "2G"},
                              {"HMMJIT_CACHE_MEMORY_SIZE", "8M"},
                              {"HMMJIT_CACHE_ALLOW_GROUP", "1"},
                              {"HMMJIT_CACHE_LOCK_WAIT_MS", "1500"}});
  ASSERT_TRUE(settings) << settings.error().to_string();
  EXPECT_EQ(settings->directory, "/a");
  EXPECT_EQ(settings->system_directory, "/b");
  EXPECT_EQ(settings->mode, Mode::kStrict);
  EXPECT_EQ(settings->max_bytes, std::uint64_t{2} << 30);
  EXPECT_EQ(settings->max_memory_bytes, std::uint64_t{8} << 20);
  EXPECT_TRUE(settings->allow_group);
  EXPECT_EQ(settings->lock_wait.count(), 1500);
  EXPECT_EQ(setting_descriptions().size(), 7u) << "a new setting needs a line in this test";
}

TEST(CacheSettings, UnusableValuesAreUsageErrorsThatNameTheVariable) {
  for (const auto& [variable, value] :
       std::map<std::string, std::string>{{"HMMJIT_CACHE_DIR", "relative"},
                                          {"HMMJIT_CACHE_SYSTEM_DIR", "relative"},
                                          {"HMMJIT_CACHE_MODE", "fast"},
                                          {"HMMJIT_CACHE_MAX_SIZE", "-1"},
                                          {"HMMJIT_CACHE_MEMORY_SIZE", "lots"},
                                          {"HMMJIT_CACHE_ALLOW_GROUP", "maybe"},
                                          {"HMMJIT_CACHE_LOCK_WAIT_MS", "-5"}}) {
    const auto settings = from({{variable, value}});
    ASSERT_FALSE(settings) << variable;
    EXPECT_EQ(settings.error().code, ErrorCode::kUsage);
    EXPECT_THAT(settings.error().to_string(), HasSubstr(variable));
    EXPECT_THAT(settings.error().remedy, HasSubstr("it takes"));
  }
  EXPECT_EQ(from({{"HMMJIT_CACHE_SYSTEM_DIR", ""}})->system_directory, "");
  EXPECT_EQ(from({{"HMMJIT_CACHE_MODE", ""}})->mode, Mode::kReadWrite);
}

TEST(CacheSettings, ModesRoundTrip) {
  for (const char* name : {"off", "ro", "rw", "refresh", "strict"}) {
    ASSERT_TRUE(parse_mode(name));
    EXPECT_STREQ(mode_name(*parse_mode(name)), name);
  }
  EXPECT_FALSE(parse_mode("RW"));
}

}  // namespace
}  // namespace hmmjit::cache
