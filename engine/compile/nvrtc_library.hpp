// The run-time compiler, loaded on demand: locates it, identifies it, and runs one compile.
//
// A few bytes of the library's file identify it. Loading it costs more than a cache hit, so it is
// loaded only to compile a kernel, or to learn its capabilities if they are unknown. Like NVRTC,
// thread-safe after construction.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"

namespace hmmjit::compile {

/// Where to search for the library. The default depends on the environment.
struct NvrtcSearch {
  std::vector<std::string> folders;  ///< in order; each may hold libnvrtc.so.13 or .12
  bool system_loader = true;         ///< then asks the dynamic loader
  /// Major version of the driver that will load the images; 0: unknown. Prefers a compiler that is
  /// not newer. If all are newer, uses one, and the driver decides whether to accept its images.
  int driver_major = 0;
  int highest_major = 0;  ///< newer compilers are ignored; 0: any
  /// If $HMMJIT_NVRTC_DIR is set, only that; else LD_LIBRARY_PATH, $CUDA_HOME, $CUDA_PATH, the
  /// usual folders, then the loader.
  static NvrtcSearch from_environment();
};

/// One finished run of the compiler, successful or not.
struct NvrtcOutcome {
  bool succeeded = false;
  bool cancelled = false;
  std::string status;  ///< NVRTC's own name for the result
  std::string log;     ///< complete, even if options were rejected
  std::string image;   ///< cubin bytes or PTX text
};

enum class ImageKind { kCubin, kPtx };
const char* image_kind_name(ImageKind kind);

class NvrtcLibrary {
 public:
  /// Fails with kCompile if no NVRTC 12 or 13 is found; the message says what to install.
  static Result<std::shared_ptr<const NvrtcLibrary>> locate(
      const NvrtcSearch& search = NvrtcSearch::from_environment());
  ~NvrtcLibrary();

  const std::string& path() const { return path_; }
  int major() const { return major_; }
  int minor() const { return minor_; }
  /// "nvrtc 13.0 <build id>": identifies a compiler across machines. Part of every cache key.
  const std::string& identity() const { return identity_; }

  /// Supported cubin architectures (75, 80, ...), ascending. Loads the library unless its version
  /// is known. Fails with kCompile if it cannot be loaded.
  Result<std::vector<int>> architectures() const;
  /// As architectures(), but always asks the library.
  Result<std::vector<int>> queried_architectures() const;

  /// Loads the library and its built-ins. Fails with kCompile, also without built-ins, for which
  /// NVRTC would report an unrelated compile error.
  Status load() const;

  /// Compiles one translation unit without headers and polls `cancelled` meanwhile. Fails only if
  /// the library cannot be loaded or runs out of memory: a rejected source or option is an outcome.
  Result<NvrtcOutcome> compile(const std::string& source, const std::string& file_name,
                               const std::vector<std::string>& options, ImageKind kind,
                               const std::function<bool()>& cancelled = {}) const;

 private:
  NvrtcLibrary() = default;
  struct Functions;

  std::string path_, identity_;
  int major_ = 0, minor_ = 0;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<Functions> functions_;  // set once loaded
};

}  // namespace hmmjit::compile
