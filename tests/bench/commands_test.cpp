// The commands `hmmjit bench`, `tune` and `plan` without a GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "compile/tuning_store.hpp"
#include "hmmjit/command.hpp"
#include "hmmjit/compile_afterwards.hpp"
#include "plan/plan.hpp"
#include "tests/support/folder.hpp"

namespace hmmjit::tools {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

class BenchCommands : public testing::Test {
 protected:
  void SetUp() override {
    ::setenv("HMMJIT_CACHE_DIR", folder_.c_str(), 1);
    ::setenv("HMMJIT_CUDA_LIBRARY", "/nowhere/libcuda.so.1", 1);
  }
  void TearDown() override {
    ::unsetenv("HMMJIT_CACHE_DIR");
    ::unsetenv("HMMJIT_CUDA_LIBRARY");
    ::unsetenv("HMMJIT_TUNED");
  }
  struct Outcome {
    int status = 0;
    std::string out, err;
  };
  static Outcome run(const CommandSpec& command, const std::vector<std::string>& arguments) {
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    Outcome outcome;
    outcome.status = run_command(command, "hmmjit", arguments);
    outcome.out = testing::internal::GetCapturedStdout();
    outcome.err = testing::internal::GetCapturedStderr();
    return outcome;
  }
  // The second candidate of a plan, as if it had been measured.
  plan::TunedChoice keep_a_choice() {
    cache::Settings settings;
    settings.directory = folder_.string();
    const auto templates = render::TemplateLibrary::from_environment();
    const auto device = *plan::find_device("H200");
    const auto planned = plan::make_plan(plan::Stage::kSsv, 400, 29, device);
    plan::TunedChoice choice;
    choice.device = device.name;
    choice.capability = device.capability();
    choice.sm_count = device.sm_count;
    choice.catalogue = compile::catalogue_version(*templates);
    choice.stage = plan::Stage::kSsv;
    choice.class_length = planned->class_length;
    choice.variant = std::string(planned->fallbacks.front().variant->name);
    choice.constants = planned->fallbacks.front().constants;
    choice.gcups = 21000;
    choice.planned_gcups = 20000;
    plan::TuningTable table;
    table.add(choice);
    EXPECT_TRUE(compile::store_tuning(settings, table));
    return choice;
  }

  test_support::TemporaryFolder temporary_;
  fs::path folder_ = temporary_.path();
};

// A stand-in for hmmjit records its arguments.
TEST_F(BenchCommands, WhatASearchLeavesIsCompiledAfterIt) {
  const fs::path program = folder_ / "program", noted = folder_ / "noted";
  std::ofstream(program) << "#!/bin/sh\n{ echo \"$@\"; readlink /proc/self/fd/0 /proc/$$/fd/2;"
                         << " cut -d' ' -f6 /proc/$$/stat; echo $$; } > " << noted.string() << "\n";
  fs::permissions(program, fs::perms::owner_all);
  const gpu::GpuFilters::UnfinishedKernels kernels{1, {112, 704}};
  for (const char* job : {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "SGE_TASK_ID"}) ::unsetenv(job);
  const CgroupFiles no_quota{folder_ / "membership", folder_};
  const auto started = compile_afterwards(kernels, program.c_str(), no_quota);
  ASSERT_TRUE(started);
  int status = 0;
  ASSERT_EQ(::waitpid(*started, &status, 0), *started);
  EXPECT_EQ(status, 0);
  std::ifstream in(noted);
  std::string words, input, errors, session, process;
  std::getline(in, words);
  in >> input >> errors >> session >> process;
  EXPECT_EQ(words, "cache warm --idle --target gpu:1 --length 112,704");
  EXPECT_EQ(input, "/dev/null");
  EXPECT_EQ(errors, "/dev/null");
  EXPECT_EQ(session, process) << "of its own";

  EXPECT_FALSE(compile_afterwards({1, {}}, program.c_str(), no_quota));
  EXPECT_FALSE(compile_afterwards(kernels, (folder_ / "none").c_str(), no_quota));
  for (const auto& [variable, value] : {std::pair{"HMMJIT_COMPILE_AFTERWARDS", "0"},
                                        {"HMMJIT_CACHE_MODE", "ro"},
                                        {"SLURM_JOB_ID", "17"}}) {
    ::setenv(variable, value, 1);
    EXPECT_FALSE(compile_afterwards(kernels, program.c_str(), no_quota)) << variable;
    ::unsetenv(variable);
  }
  std::ofstream(folder_ / "membership") << "0::/\n";
  std::ofstream(folder_ / "cgroup.controllers") << "cpu\n";
  std::ofstream(folder_ / "cpu.max") << "200000 100000\n";
  EXPECT_FALSE(compile_afterwards(kernels, program.c_str(), no_quota)) << "a quota now";
  ::setenv("HMMJIT_COMPILE_AFTERWARDS", "1", 1);
  const auto demanded = compile_afterwards(kernels, program.c_str(), no_quota);
  ::unsetenv("HMMJIT_COMPILE_AFTERWARDS");
  ASSERT_TRUE(demanded);
  ::waitpid(*demanded, &status, 0);
}

TEST_F(BenchCommands, PlansNameWhatWasMeasuredUnlessToldNotTo) {
  const std::vector<std::string> plan{"--length", "400", "--device", "H200", "--stage", "ssv"};
  const Outcome before = run(plan_command(), plan);
  EXPECT_EQ(before.status, 0) << before.err;
  EXPECT_THAT(before.out, testing::Not(HasSubstr("tuned")));
  keep_a_choice();
  const Outcome after = run(plan_command(), plan);
  EXPECT_THAT(after.out, HasSubstr("tuned      measured 21000 GCUPS"));
  auto without = plan;
  without.emplace_back("--no-tuned");
  EXPECT_EQ(run(plan_command(), without).out, before.out);
  ::setenv("HMMJIT_TUNED", "off", 1);
  EXPECT_EQ(run(plan_command(), plan).out, before.out);
  ::unsetenv("HMMJIT_TUNED");

  const Outcome shown = run(tune_command(), {"--show"});
  EXPECT_EQ(shown.status, 0);
  EXPECT_THAT(shown.out, HasSubstr("\"gcups\":21000,"));
  EXPECT_EQ(run(tune_command(), {"--clear"}).status, 0);
  EXPECT_EQ(run(plan_command(), plan).out, before.out);
  const Outcome nothing = run(tune_command(), {"--show"});
  EXPECT_EQ(nothing.out, "");
  EXPECT_THAT(nothing.err,
              HasSubstr("nothing is measured yet; it would be kept in " + folder_.string()));
}

}  // namespace
}  // namespace hmmjit::tools
