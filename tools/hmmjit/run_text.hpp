// What outputs say about the run that made them.
#pragma once

#include <string>

namespace hmmjit::tools {

/// Date and time in the form of ctime, without its line feed, whatever the locale.
std::string date_text();
std::string current_folder();
/// The two lines that open a report, and the rule that stands above and below options.
std::string report_banner(const std::string& command, const std::string& summary);
extern const char* const kReportRule;

}  // namespace hmmjit::tools
