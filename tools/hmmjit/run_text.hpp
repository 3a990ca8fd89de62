// Descriptions of a run in its outputs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hmmjit::tools {

/// The program named as author in outputs: hmmjit's, or with --hmmer-banner the replaced HMMER
/// program.
struct Author {
  std::string_view command;  ///< "search"
  std::string_view hmmer;    ///< "hmmsearch"
  std::string_view title;    ///< what the program does
  bool as_hmmer = false;

  std::string program() const;  ///< "hmmjit search", "hmmsearch"
  std::string banner() const;   ///< the `#` lines that open help and reports
  /// "hmmjit search (hmmjit 0.1.0)": the author of alignments (#=GF AU), under any name.
  std::string signature() const;
  std::string model_tag() const;  ///< in the first line of a model: "hmmjit 0.1.0"
};

/// Date and time in the form of ctime, without line feed, in any locale.
std::string date_text();
std::string current_folder();
/// "1 model", "2 models". `several`: an irregular plural.
std::string counted(std::uint64_t number, std::string_view noun, std::string_view several = {});

}  // namespace hmmjit::tools
