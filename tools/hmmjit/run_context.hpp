// The context of a run: a process of the program, or a request to a server.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/diagnostics.hpp"
#include "run_text.hpp"
#include "search/session.hpp"
#include "search/target_source.hpp"
#include "search_inputs.hpp"

namespace hmmjit::tools {

/// The defaults are for the program, which owns the process.
struct RunContext {
  /// Writes to standard error. Thread-safe.
  std::function<void(std::string_view)> say = print_diagnostic;
  std::function<void(const std::string&)> warn = tools::warn;
  std::string folder = current_folder();
  int report = STDOUT_FILENO;  ///< where the main report goes without -o

  /// A request to a server, which must neither change nor end the process.
  struct Request {
    const Cancellation* cancellation = nullptr;  ///< as SearchOptions::cancellation
    SearchProgress& progress;
    int threads = 1;           ///< at most
    int running = 1;           ///< running requests, which share the threads
    std::uint64_t memory = 0;  ///< as SearchOptions::memory, at most
    /// The targets of a file kept by the server; null: not kept.
    std::function<std::unique_ptr<TargetSource>(const std::string& path, const Alphabet&)> targets;
    /// The models of the profile file; null: not kept by the server.
    std::shared_ptr<const ResidentModels> models;
    std::shared_ptr<Session> session;  ///< shared by all runs; never null
  };
  std::optional<Request> request = {};
};

}  // namespace hmmjit::tools
