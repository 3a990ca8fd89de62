// A locale whose decimal point is a comma, compiled if the machine has none.
#pragma once

#include <clocale>
#include <cstdlib>
#include <string>
#include <string_view>

#include "support/folder.hpp"

namespace hmmjit::test_support {

/// Sets a locale with a decimal comma for its lifetime, if made(): an installed one, or one
/// compiled with localedef from the sources in Debian's package locales.
class CommaLocale {
 public:
  CommaLocale() {
    for (const char* name : {"de_DE.UTF-8", "de_DE", "fr_FR.UTF-8"}) {
      if (set(name)) return;
    }
    const std::string folder = folder_.path().string();
    const std::string command =
        "localedef -i de_DE -f UTF-8 '" + folder + "/de_DE.UTF-8' >/dev/null 2>&1";
    if (std::system(command.c_str()) != 0) return;
    ::setenv("LOCPATH", folder.c_str(), 1);
    set("de_DE.UTF-8");
  }
  ~CommaLocale() {
    std::setlocale(LC_ALL, "C");
    ::unsetenv("LOCPATH");
  }
  CommaLocale(const CommaLocale&) = delete;
  CommaLocale& operator=(const CommaLocale&) = delete;

  bool made() const { return made_; }

 private:
  bool set(const char* name) {
    made_ = std::setlocale(LC_ALL, name) != nullptr &&
            std::string_view(std::localeconv()->decimal_point) == ",";
    return made_;
  }
  TemporaryFolder folder_;
  bool made_ = false;
};

}  // namespace hmmjit::test_support
