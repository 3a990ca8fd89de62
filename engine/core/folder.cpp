#include "core/folder.hpp"

#include <dirent.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <new>

namespace hmmjit {

Result<std::vector<std::string>> names_in_folder(const std::string& folder) {
  const auto unreadable = [&](int error) {
    if (error == ENOMEM) throw std::bad_alloc();
    return fail(ErrorCode::kInput, std::string("cannot read the folder: ") + std::strerror(error),
                folder, "check the name and the permissions");
  };
  const auto close = [](DIR* stream) { ::closedir(stream); };
  const std::unique_ptr<DIR, decltype(close)> stream(::opendir(folder.c_str()), close);
  if (stream == nullptr) return unreadable(errno);
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* const found = ::readdir(stream.get());
    if (found == nullptr) break;
    names.emplace_back(found->d_name);
    if (names.back() == "." || names.back() == "..") names.pop_back();
  }
  if (errno != 0) return unreadable(errno);
  std::ranges::sort(names);
  return names;
}

}  // namespace hmmjit
