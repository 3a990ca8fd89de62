#include "run_text.hpp"

#include <fmt/format.h>

#include <ctime>
#include <filesystem>

#include "report/report_header.hpp"

namespace hmmjit::tools {

std::string Author::program() const {
  return as_hmmer ? std::string(hmmer) : fmt::format("hmmjit {}", command);
}

std::string Author::banner() const {
  return as_hmmer ? ReportHeader::hmmer_banner(hmmer, title, HMMJIT_VERSION)
                  : ReportHeader::banner(program(), title, HMMJIT_VERSION, hmmer);
}

std::string Author::signature() const {
  return fmt::format("hmmjit {0} (hmmjit {1})", command, HMMJIT_VERSION);
}

std::string Author::model_tag() const {
  return as_hmmer ? "3.4 | Aug 2023" : fmt::format("hmmjit {}", HMMJIT_VERSION);
}

std::string date_text() {
  // The form of ctime. Not strftime: its names depend on the locale.
  static constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                            "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::time_t now = std::time(nullptr);
  struct tm time {};
  ::localtime_r(&now, &time);
  return fmt::format("{} {} {:2} {:02}:{:02}:{:02} {}", kDays[time.tm_wday], kMonths[time.tm_mon],
                     time.tm_mday, time.tm_hour, time.tm_min, time.tm_sec, time.tm_year + 1900);
}

std::string current_folder() {
  std::error_code error;
  const auto folder = std::filesystem::current_path(error);
  return error ? std::string("?") : folder.string();
}

std::string counted(std::uint64_t number, std::string_view noun, std::string_view several) {
  if (number == 1) return fmt::format("1 {}", noun);
  return several.empty() ? fmt::format("{} {}s", number, noun)
                         : fmt::format("{} {}", number, several);
}

}  // namespace hmmjit::tools
