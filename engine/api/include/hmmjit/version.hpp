// Versions of the library and of its file formats.
//
//   std::cout << hmmjit::version().text << '\n';
#pragma once

#include "hmmjit/export.hpp"

HMMJIT_BEGIN_NAMESPACE

struct Version {
  int major = 0, minor = 0, patch = 0;
  const char* text = "";       ///< "0.1.0"; static storage
  int cache_entry_format = 0;  ///< of kernel cache entries (docs/cache-format.md)
};

/// The version of the running library, which may be newer than the headers. Thread-safe.
HMMJIT_EXPORT Version version() noexcept;

HMMJIT_END_NAMESPACE
