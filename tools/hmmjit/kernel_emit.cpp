#include "hmmjit/kernel_emit.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

#include "core/remedy.hpp"
#include "core/spool_file.hpp"
#include "hmmjit/option_table.hpp"

extern char** environ;

namespace hmmjit::tools {

std::string find_disassembler() {
  const char* const path = std::getenv("PATH");
  std::vector<std::string> folders = split_list(path != nullptr ? path : "", ':');
  if (const char* home = std::getenv("CUDA_HOME"); home != nullptr) {
    folders.push_back(std::string(home) + "/bin");
  }
  folders.emplace_back("/usr/local/cuda/bin");
  for (const char* program : {"nvdisasm", "cuobjdump"}) {
    for (const std::string& folder : folders) {
      std::string candidate = folder + "/" + program;
      if (::access(candidate.c_str(), X_OK) == 0) return candidate;
    }
  }
  return {};
}

Result<std::string> disassemble(const std::string& cubin) {
  const std::string program = find_disassembler();
  if (program.empty()) {
    return fail(ErrorCode::kCompile, "no disassembler (nvdisasm, cuobjdump) found", "--emit sass",
                "install the CUDA toolkit's binary utilities, or use --emit cubin");
  }
  const Descriptor file(open_unnamed_file());
  if (file.get() < 0 || write_all(file.get(), cubin) != 0)
    return fail(ErrorCode::kOutput, "cannot write a temporary file", {},
                "set TMPDIR to a folder with free space");
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return fail(ErrorCode::kResources, "cannot make a pipe", {}, remedy_of(errno, ""));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, file.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  std::string path = program, sass = "-sass", input = "/dev/stdin";
  std::vector<char*> arguments{path.data()};
  if (program.ends_with("cuobjdump")) arguments.push_back(sass.data());
  arguments.insert(arguments.end(), {input.data(), nullptr});
  pid_t child = -1;
  const int spawned =
      ::posix_spawn(&child, program.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  std::string out;
  int status = -1;
  if (spawned == 0) {
    char buffer[65536];
    ssize_t got = 0;
    while ((got = ::read(ends[0], buffer, sizeof buffer)) > 0) {
      out.append(buffer, static_cast<std::size_t>(got));
    }
    ::waitpid(child, &status, 0);
  }
  ::close(ends[0]);
  if (spawned != 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return fail(ErrorCode::kCompile, "the disassembler failed", program);
  }
  return out;
}

}  // namespace hmmjit::tools
