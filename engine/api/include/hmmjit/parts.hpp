// A search divided among machines: each writes a part file; a merge gives the whole result.
//
//   hmmjit::search_part(models, "proteins.hjdb", {.part = 1, .parts = 2}, "part1");
//   hmmjit::search_part(models, "proteins.hjdb", {.part = 2, .parts = 2}, "part2");
//   const hmmjit::SearchResults whole = hmmjit::merge_parts({"part1", "part2"});
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hmmjit/error.hpp"
#include "hmmjit/models.hpp"
#include "hmmjit/results.hpp"
#include "hmmjit/search.hpp"

HMMJIT_BEGIN_NAMESPACE

/// The share of a search in a part. Numbers from 1.
struct PartShare {
  std::uint32_t part = 1, parts = 1;  ///< of the targets: about equal residues
  /// Shares of the models, with about equal positions. Useful only for few targets and very many
  /// models: every share of the models reads its whole share of the targets.
  std::uint32_t model_part = 1, model_parts = 1;
};

/// Header of a part file, described in hmmjit.h. Format: docs/part-format.md.
struct PartInfo : hmmjit_part_info {
  /// The search's options that determine results; for reports of merged parts.
  SearchOptions options;
  std::string settings;  ///< lines "name: value", equal in all parts of a search
};

/// Searches a share of a database with a share of the models and writes the part to the file
/// `output`, like `hmmjit search --part` and `--model-part`. See hmmjit_search_model_part. Any host
/// may search any part; the parts of a search need the same models, and equal thresholds and
/// filters. Thread-safe. Throws Error as search does, and kOutput.
HMMJIT_EXPORT PartInfo search_part(const Models& models, const std::string& database,
                                   const PartShare& share, const std::string& output,
                                   const hmmjit_search_options& options = SearchOptions(),
                                   const SearchCallbacks& callbacks = {});

/// The results of the whole search, from the files of all its parts in any order: equal to
/// search's, without unreported targets. See hmmjit_merge_parts. Statistics hold the counts of
/// models, targets and hits. Thread-safe.
///
/// Throws Error kInput if a part is missing, damaged or of another search.
HMMJIT_EXPORT SearchResults merge_parts(const std::vector<std::string>& files,
                                        const SearchCallbacks& callbacks = {});

/// Writes adjacent parts as one part, with the content of a search of that part. Thread-safe.
/// Throws Error as merge_parts does, and kInput if they are not adjacent.
HMMJIT_EXPORT PartInfo join_parts(const std::vector<std::string>& files, const std::string& output);

/// The missing parts as a list of numbers from 1, "3,17,40-42"; empty if the files hold all parts.
/// Part I of N for share J of the models has number (J - 1) * N + I. Thread-safe. Throws Error as
/// merge_parts does, except for missing parts.
HMMJIT_EXPORT std::string missing_parts(const std::vector<std::string>& files);

/// Describes a part. Thread-safe. Throws Error kInput for a file that is not a complete part.
HMMJIT_EXPORT PartInfo part_info(const std::string& file);
/// Checks every byte of a part. Thread-safe. Throws Error kInput at the first damage.
HMMJIT_EXPORT PartInfo verify_part(const std::string& file);

HMMJIT_END_NAMESPACE
