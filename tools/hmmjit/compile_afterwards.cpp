#include "compile_afterwards.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>
#include <string_view>

#include "cache/cache_settings.hpp"

namespace hmmjit::tools {
namespace {

bool wanted(const CgroupFiles& groups) {
  const char* const given = std::getenv("HMMJIT_COMPILE_AFTERWARDS");
  const std::string_view value = given != nullptr ? given : "";
  if (!value.empty()) return value != "0" && value != "no" && value != "off";
  // Slurm, PBS, LSF, Grid Engine, HTCondor, Flux.
  for (const char* job :
       {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "SGE_TASK_ID", "_CONDOR_SLOT", "FLUX_JOB_ID"}) {
    if (std::getenv(job) != nullptr) return false;
  }
  return cgroup_cores(groups) == 0;
}

}  // namespace

std::optional<pid_t> compile_afterwards(const gpu::GpuFilters::UnfinishedKernels& kernels,
                                        const char* program, const CgroupFiles& groups) {
  if (kernels.lengths.empty() || !wanted(groups)) return std::nullopt;
  const auto settings = cache::settings_from_environment();
  if (!settings || settings->mode != cache::Mode::kReadWrite || settings->directory.empty())
    return std::nullopt;
  std::string name = "hmmjit", target = fmt::format("gpu:{}", kernels.device),
              lengths = fmt::format("{}", fmt::join(kernels.lengths, ","));
  std::string words[] = {name, "cache", "warm", "--idle", "--target", target, "--length", lengths};
  std::array<char*, std::size(words) + 1> arguments{};
  for (std::size_t i = 0; i < std::size(words); ++i) arguments[i] = words[i].data();

  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  if (::posix_spawn_file_actions_init(&files) != 0) return std::nullopt;
  if (::posix_spawnattr_init(&attributes) != 0) {
    ::posix_spawn_file_actions_destroy(&files);
    return std::nullopt;
  }
  // Closes inherited outputs: their readers must not wait for this process.
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    ::posix_spawn_file_actions_addopen(&files, descriptor, "/dev/null", O_RDWR, 0);
#ifdef __GLIBC__
  ::posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
#endif
  // Its own session protects the process from Ctrl-C and from the end of the terminal.
  sigset_t none, all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setflags(
      &attributes,
      static_cast<short>(POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));
  pid_t process = 0;
  const int failed =
      ::posix_spawn(&process, program, &files, &attributes, arguments.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&files);
  if (failed != 0) return std::nullopt;  // the next search compiles its kernels
  return process;
}

}  // namespace hmmjit::tools
