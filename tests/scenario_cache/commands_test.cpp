// Every `hmmjit cache` command, as text and as JSON; acceptance tests H (du), I and O.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "cache/entry_lock.hpp"
#include "cache/entry_store.hpp"
#include "cache/kernel_cache.hpp"
#include "pretend_compiler.hpp"
#include "run_program.hpp"

namespace hmmjit::cache {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using Json = nlohmann::json;

class CacheCommandsTest : public CacheFolderTest {
 protected:
  void SetUp() override {
    CacheFolderTest::SetUp();
    log_ = base_ + "/compiles";
    environment_ = {
        {"HMMJIT_CACHE_DIR", root_}, {"HMMJIT_CACHE_SYSTEM_DIR", ""}, {"PRETEND_LOG", log_}};
  }

  int run(std::vector<std::string> words) {
    fs::remove(base_ + "/out");
    fs::remove(base_ + "/err");
    words.insert(words.begin(), CACHE_TOOL);
    const int status = wait_for(start_program(words, environment_, base_ + "/out", base_ + "/err"));
    out_ = read_file(base_ + "/out");
    err_ = read_file(base_ + "/err");
    return status;
  }
  Json json(std::vector<std::string> words, int expected = 0) {
    words.push_back("--json");
    EXPECT_EQ(run(words), expected) << err_;
    Json parsed = Json::parse(out_, nullptr, false);
    EXPECT_FALSE(parsed.is_discarded()) << out_;
    return parsed;
  }
  void warm() {
    ASSERT_EQ(run({"warm", "--target", "sm_75,sm_80,sm_90", "--length", "100,200"}), 0) << err_;
  }
  std::string digest(const std::string& source, const std::string& target) {
    return pretend_key(source, target).digest().hex();
  }
  std::size_t compiles() { return count_lines(read_file(log_)); }

  std::string log_, out_, err_;
  Environment environment_;
};

TEST_F(CacheCommandsTest, Path) {
  const Json path = json({"path"});
  EXPECT_EQ(path["directory"], root_);
  EXPECT_EQ(path["exists"], false);
  EXPECT_EQ(path["usable"], true);
  EXPECT_FALSE(fs::exists(root_)) << "asking makes no folder";
  EXPECT_EQ(run({"path"}), 0);
  EXPECT_EQ(out_, root_ + "\n");
  EXPECT_EQ(run({"path", "--cache-dir", "/elsewhere"}), 0);
  EXPECT_EQ(out_, "/elsewhere\n");
  environment_ = {};
  EXPECT_EQ(run({"path"}), 7);
  EXPECT_THAT(err_, HasSubstr("HMMJIT_CACHE_DIR"));
}

TEST_F(CacheCommandsTest, OnlyOneIdleWarmingAtATime) {
  const std::vector<std::string> words{"warm", "--idle", "--target", "sm_80", "--length", "100"};
  warm();  // makes the folder
  {
    const auto other =
        FileLock::acquire(root_ + "/lock", kIdleWarmLockOffset, std::chrono::milliseconds(0), 0600);
    ASSERT_TRUE(other);
    EXPECT_EQ(run(words), 0);
    EXPECT_EQ(out_, "another process does it already\n");
  }
  EXPECT_EQ(run(words), 0);
  EXPECT_THAT(out_, HasSubstr("1 present already"));
}

TEST_F(CacheCommandsTest, WarmMakesThenFindsAndFailsWhenNothingIsMade) {
  EXPECT_EQ(json({"warm", "--target", "sm_80,sm_90", "--length", "100"})["made"], 2);
  const Json again = json({"warm", "--target", "sm_80,sm_90", "--length", "100"});
  EXPECT_EQ(again["made"], 0);
  EXPECT_EQ(again["present"], 2);
  EXPECT_EQ(compiles(), 2u);
  EXPECT_EQ(run({"warm"}), 6);
  EXPECT_THAT(err_, HasSubstr("no kernel was made"));
  environment_.erase("PRETEND_LOG");
  EXPECT_EQ(run({"warm", "--target", "sm_80", "--length", "1"}), 6);
  EXPECT_THAT(err_, HasSubstr("no kernel compiler"));
}

TEST_F(CacheCommandsTest, StatsAgreeWithDu) {
  warm();
  const Json stats = json({"stats"});
  EXPECT_EQ(stats["entries"], 6);
  EXPECT_EQ(stats["counters"]["published"], 6);
  EXPECT_EQ(stats["counters"]["misses"], 6);
  FILE* pipe = ::popen(("du -s -B1 '" + root_ + "'").c_str(), "r");
  unsigned long long bytes = 0;
  ASSERT_EQ(std::fscanf(pipe, "%llu", &bytes), 1);
  ::pclose(pipe);
  EXPECT_EQ(stats["allocated_bytes"], bytes);
  EXPECT_EQ(run({"stats"}), 0);
  EXPECT_THAT(out_, HasSubstr("entries          6\n"));
}

TEST_F(CacheCommandsTest, ListAndShow) {
  warm();
  EXPECT_EQ(json({"list"}).size(), 6u);
  const Json some = json({"list", "--where", "target=sm_80", "--where", "target=sm_75"});
  EXPECT_EQ(some.size(), 4u);
  EXPECT_EQ(json({"list", "--where", "target=sm_80", "--where", "source=length 100"}).size(), 1u);
  EXPECT_EQ(run({"list", "--where", "nonsense"}), 2);
  EXPECT_EQ(run({"list"}), 0);
  EXPECT_THAT(out_, HasSubstr("target=sm_90"));

  const std::string id = digest("length 100", "sm_80");
  const Json shown = json({"show", id.substr(0, 10)});
  EXPECT_EQ(shown["digest"], id);
  EXPECT_EQ(shown["attributes"]["registers"], "64");
  EXPECT_EQ(shown["components"][2]["value"], "length 100");
  ASSERT_EQ(run({"show", id}), 0);
  EXPECT_THAT(out_, HasSubstr(id));
  ASSERT_EQ(run({"show", id, "--component", "source"}), 0);
  EXPECT_EQ(out_, "length 100");
  ASSERT_EQ(run({"show", id, "--attachment", "plan"}), 0);
  EXPECT_EQ(out_, "{\"variant\":\"pretend\"}");
  ASSERT_EQ(run({"show", id, "--payload", base_ + "/kernel.cubin"}), 0);
  EXPECT_EQ(read_file(base_ + "/kernel.cubin"),
            pretend_payload(pretend_key("length 100", "sm_80")));
  EXPECT_EQ(run({"show", "ffffffffffff"}), 3);
  EXPECT_EQ(run({"show", id, "--component", "nothing"}), 2);
}

// Acceptance test G for the command.
TEST_F(CacheCommandsTest, ExplainNamesTheDifference) {
  warm();
  const Json both = json({"explain", digest("length 100", "sm_80"), digest("length 100", "sm_90")});
  ASSERT_EQ(both["differences"].size(), 1u);
  EXPECT_EQ(both["differences"][0]["component"], "target");
  EXPECT_EQ(both["differences"][0]["detail"], "'sm_80' became 'sm_90'");
  const Json two = json({"explain", digest("length 100", "sm_80"), digest("length 200", "sm_90")});
  EXPECT_EQ(two["differences"].size(), 2u);
  EXPECT_EQ(json({"explain", digest("length 100", "sm_80")})["differences"].size(), 1u);
  ASSERT_EQ(run({"explain", digest("length 100", "sm_80"), digest("length 100", "sm_90")}), 0);
  EXPECT_THAT(out_, HasSubstr("target: 'sm_80' became 'sm_90'"));
}

TEST_F(CacheCommandsTest, VerifyFindsAndRepairsDamage) {
  warm();
  EXPECT_EQ(json({"verify"})["damaged"].size(), 0u);
  const EntryStore store = open_store(root_);
  const std::string path = store.entry_path(pretend_key("length 100", "sm_80").digest());
  const std::string good = read_file(path);
  write_file(path, good.substr(0, good.size() - 1));
  const Json found = json({"verify"}, 3);
  ASSERT_EQ(found["damaged"].size(), 1u);
  EXPECT_EQ(found["damaged"][0]["file"], path);
  EXPECT_TRUE(fs::exists(path));
  EXPECT_EQ(json({"verify", "--repair"})["removed"], 1);
  EXPECT_FALSE(fs::exists(path));
  EXPECT_EQ(json({"verify"})["entries"], 5);
}

TEST_F(CacheCommandsTest, TrimAndClear) {
  warm();
  const Json trimmed = json({"trim", "--cache-max-size", "60K"});
  EXPECT_GT(trimmed["entries_removed"], 0);
  EXPECT_LE(json({"stats"})["allocated_bytes"], 60 << 10);
  write_file(root_ + "/notes.txt", "a user's file");
  EXPECT_EQ(json({"clear"})["entries_left"], 0);
  EXPECT_EQ(json({"stats"})["entries"], 0);
  EXPECT_TRUE(fs::exists(root_ + "/notes.txt"));
  EXPECT_EQ(run({"clear", "--cache-mode", "ro"}), 2);
  EXPECT_THAT(err_, HasSubstr("mode ro"));
}

// Acceptance test O: warm for three targets, export, import into an empty cache, mode strict: no
// compile. The same from the system layer.
TEST_F(CacheCommandsTest, WarmExportImportStrict) {
  warm();
  const std::string bundle = base_ + "/all.bundle";
  EXPECT_EQ(json({"export", bundle})["entries"], 6);
  EXPECT_EQ(json({"verify", "--bundle", bundle})["entries"], 6);
  environment_["HMMJIT_CACHE_DIR"] = base_ + "/second";
  const Json imported = json({"import", bundle});
  EXPECT_EQ(imported["imported"], 6);
  EXPECT_THAT(imported["trust"].get<std::string>(), HasSubstr("not who made it"));
  ASSERT_EQ(run({"import", bundle}), 0);
  EXPECT_THAT(out_, HasSubstr("6 present already"));
  EXPECT_THAT(out_, HasSubstr("trust"));
  ASSERT_EQ(compiles(), 6u);

  // Strict is a mode for searches; `warm` refuses it, the worker runs in it.
  EXPECT_EQ(run({"warm", "--target", "sm_80", "--length", "100", "--cache-mode", "strict"}), 2);
  const auto strict = [&](const char* directory, const std::string& folder) {
    Settings settings;
    (std::string_view(directory) == "user" ? settings.directory : settings.system_directory) =
        folder;
    if (settings.directory.empty()) settings.directory = base_ + "/nothing";
    settings.mode = Mode::kStrict;
    const auto cache = KernelCache::open(settings);
    for (const char* target : {"sm_75", "sm_80", "sm_90"}) {
      for (const char* source : {"length 100", "length 200"}) {
        const CacheKey key = pretend_key(source, target);
        const auto got = cache->obtain(
            key, [&] { return pretend_compile(key, log_, std::chrono::milliseconds(0)); });
        ASSERT_TRUE(got) << got.error().to_string();
        EXPECT_EQ(got->entry->payload, pretend_payload(key));
      }
    }
    EXPECT_FALSE(
        cache->obtain(pretend_key("length 300", "sm_75"), [] { return Result<Entry>(Entry{}); }));
  };
  strict("user", base_ + "/second");
  strict("system", base_ + "/second");
  EXPECT_EQ(compiles(), 6u) << "strict mode compiled";
}

TEST_F(CacheCommandsTest, EmptyExportAndDamagedImportAreErrors) {
  EXPECT_EQ(run({"export", base_ + "/none.bundle"}), 3);
  EXPECT_FALSE(fs::exists(base_ + "/none.bundle"));
  warm();
  const std::string bundle = base_ + "/some.bundle";
  ASSERT_EQ(run({"export", bundle, "--where", "target=sm_80"}), 0) << err_;
  EXPECT_EQ(run({"export", base_ + "/none.bundle", "--where", "target=sm_1"}), 3);
  EXPECT_THAT(err_, HasSubstr("nothing to export"));
  std::string bytes = read_file(bundle);
  bytes[bytes.size() / 2] = static_cast<char>(~bytes[bytes.size() / 2]);
  write_file(bundle, bytes);
  environment_["HMMJIT_CACHE_DIR"] = base_ + "/second";
  EXPECT_EQ(run({"import", bundle}), 3);
  EXPECT_THAT(err_, HasSubstr("damaged kernel bundle"));
  EXPECT_FALSE(fs::exists(base_ + "/second")) << "nothing of a damaged bundle is stored";
}

// Acceptance test I for the command.
TEST_F(CacheCommandsTest, GroupWritableFolderIsRefusedWithARemedy) {
  warm();
  ASSERT_EQ(::chmod(root_.c_str(), 0770), 0);
  EXPECT_EQ(run({"stats"}), 7);
  EXPECT_THAT(err_, HasSubstr("chmod g-w"));
  EXPECT_EQ(run({"stats", "--cache-allow-group", "1"}), 0);
  environment_["HMMJIT_CACHE_ALLOW_GROUP"] = "1";
  EXPECT_EQ(run({"stats"}), 0);
}

TEST_F(CacheCommandsTest, UsageErrors) {
  EXPECT_EQ(run({}), 2);
  EXPECT_EQ(run({"frobnicate"}), 2);
  EXPECT_EQ(run({"show"}), 2);
  EXPECT_EQ(run({"--help"}), 0);
  EXPECT_THAT(out_, HasSubstr("HMMJIT_CACHE_DIR"));
  EXPECT_EQ(run({"stats", "--cache-mode", "fast"}), 2);
  EXPECT_THAT(err_, HasSubstr("--cache-mode"));
  environment_["HMMJIT_CACHE_MAX_SIZE"] = "huge";
  EXPECT_EQ(run({"stats"}), 2);
  EXPECT_THAT(err_, HasSubstr("HMMJIT_CACHE_MAX_SIZE"));
}

}  // namespace
}  // namespace hmmjit::cache
