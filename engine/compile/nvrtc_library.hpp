// The run-time compiler, loaded on demand: its location, its identity, and one compile.
//
// A library is located and identified by reading a few bytes of its file. It is loaded only when a
// kernel must be compiled or its answers are unknown, because loading costs more than a cache hit.
// Thread-safe after construction, as NVRTC itself is.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"

namespace hmmjit::compile {

/// Where to look for the library. The default follows the environment.
struct NvrtcSearch {
  std::vector<std::string> folders;  ///< in order; each may hold libnvrtc.so.13 or .12
  bool system_loader = true;         ///< then ask the dynamic loader
  /// Major version of the driver that will load the images; 0: unknown. A compiler that is not
  /// newer is preferred; if there is only a newer one, it is used, and the driver decides whether
  /// to accept its images.
  int driver_major = 0;
  int highest_major = 0;  ///< no newer compiler is taken; 0: any
  /// $HMMJIT_NVRTC_DIR alone when set; else LD_LIBRARY_PATH, $CUDA_HOME, $CUDA_PATH, the usual
  /// folders, then the loader.
  static NvrtcSearch from_environment();
};

/// One finished run of the compiler, successful or not.
struct NvrtcOutcome {
  bool succeeded = false;
  bool cancelled = false;
  std::string status;  ///< NVRTC's own name for the result
  std::string log;     ///< complete, also if the options were refused
  std::string image;   ///< cubin bytes or PTX text
};

enum class ImageKind { kCubin, kPtx };
const char* image_kind_name(ImageKind kind);

class NvrtcLibrary {
 public:
  /// Fails with kCompile when no NVRTC 12 or 13 is found; the message says what to install.
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
  /// Always asks the library.
  Result<std::vector<int>> queried_architectures() const;

  /// Loads library and built-ins. Fails with kCompile, also for missing built-ins, which NVRTC
  /// would report as an unrelated compile error.
  Status load() const;

  /// Compiles one translation unit without headers; polls `cancelled` meanwhile. Fails only if the
  /// library cannot be loaded or runs out of memory: a refused source or option is an outcome.
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
