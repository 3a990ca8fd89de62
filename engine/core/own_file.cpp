#include "core/own_file.hpp"

#include <dlfcn.h>

#include <string_view>
#include <system_error>

namespace hmmjit {

std::filesystem::path own_file() {
  namespace fs = std::filesystem;
  std::error_code failed;
  static const char kHere = 0;
  Dl_info here{};
  if (::dladdr(&kHere, &here) != 0 && here.dli_fname != nullptr &&
      std::string_view(here.dli_fname).find(".so") != std::string_view::npos)
    return fs::absolute(here.dli_fname, failed);
  // For a program, dladdr returns the name it was called by.
  return fs::read_symlink("/proc/self/exe", failed);
}

}  // namespace hmmjit
