// Starts programs with a given environment.
#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include <csignal>
#include <map>
#include <string>
#include <vector>

#include "tests/unit/cache/cache_fixture.hpp"

namespace hmmjit::cache {

using Environment = std::map<std::string, std::string>;

inline ::pid_t start_program(const std::vector<std::string>& command,
                             const Environment& environment, const std::string& output,
                             const std::string& errors) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  std::vector<std::string> lines;
  for (const auto& [name, value] : environment) lines.push_back(name + "=" + value);
  std::vector<char*> variables;
  for (std::string& line : lines) variables.push_back(line.data());
  variables.push_back(nullptr);
  ::posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  const int flags = O_WRONLY | O_CREAT | O_APPEND;
  ::posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), flags, 0600);
  ::posix_spawn_file_actions_addopen(&actions, 2, errors.c_str(), flags, 0600);
  ::pid_t process = -1;
  EXPECT_EQ(::posix_spawn(&process, command[0].c_str(), &actions, nullptr, arguments.data(),
                          variables.data()),
            0);
  ::posix_spawn_file_actions_destroy(&actions);
  return process;
}

/// Exit status, or 1000 + signal.
inline int wait_for(::pid_t process) {
  int status = 0;
  EXPECT_EQ(::waitpid(process, &status, 0), process);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

inline std::size_t count_lines(const std::string& text) {
  std::size_t lines = 0;
  for (char c : text) lines += c == '\n' ? 1 : 0;
  return lines;
}

}  // namespace hmmjit::cache
