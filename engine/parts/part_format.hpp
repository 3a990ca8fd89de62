// The content of a part file: settings of the search, place in the whole, models, and hits with raw
// scores. Format: docs/part-format.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/coding.hpp"
#include "core/digest.hpp"
#include "core/error.hpp"
#include "search/hit_coding.hpp"
#include "search/hits.hpp"
#include "search/options.hpp"
#include "search/search.hpp"

namespace hmmjit::parts {

/// Version of the file's layout. Readers reject every other version.
inline constexpr std::uint32_t kPartVersion = 1;
/// Version of the results, incremented if any result changes for the same input. Parts of different
/// versions cannot be merged.
inline constexpr std::uint32_t kResultVersion = 1;

/// Everything that determines a result, except the models, which are compared one by one. Parts
/// with equal settings belong to the same search.
struct PartSettings {
  std::uint32_t result_version = kResultVersion;
  Thresholds thresholds;
  FilterOptions filters;
  bool null2 = true;
  std::uint32_t seed = 42;
  bool scan = false;       ///< --as hmmscan: Z is the number of models, tables are by target
  bool alignments = true;  ///< whether the text of alignments is kept
  AlphabetType alphabet = AlphabetType::kAmino;
  std::uint64_t database_identity = 0, targets = 0, residues = 0;
  std::string table;  ///< digest of Thresholds::table if `table` is null there

  /// The stored text: lines "name: value" with exact values.
  std::string text() const;
  static Result<PartSettings> parse(std::string_view text);
};
/// The first difference between the texts of two settings.
struct SettingDifference {
  std::string name, value, other;
};
std::optional<SettingDifference> first_difference(std::string_view text, std::string_view other);

/// The pieces `first` to `last` (from 1) of a whole cut into `of` equal pieces.
struct Share {
  std::uint32_t first = 1, last = 1, of = 1;
  bool operator==(const Share&) const = default;
  std::string text() const;  ///< "3/64" or "3-7/64"
};
/// Reads "I/N" or "I-J/N".
Result<Share> parse_share(std::string_view text, const std::string& option);

/// The targets and models of a part, as stored in its file.
struct PartPlace {
  std::uint64_t first_target = 0, last_target = 0;  ///< [first, last)
  std::uint64_t first_model = 0, last_model = 0;
  std::uint64_t models = 0;  ///< of the whole search
  Share part, model_part;
  /// Only the part with the first target stores the text of models.
  bool describes_models() const { return part.first == 1; }
};

/// One model in a part: its sums and column widths. Accession, description and consensus are
/// present only if the place describes models.
struct ModelHead : ModelInfo, HitCounts {
  std::uint64_t index = 0;       ///< position in the model file
  Digest model;                  ///< model_digest()
  std::optional<Cutoff> cutoff;  ///< the model's own cutoffs, if in force
  std::uint64_t domains = 0;     ///< of all reported targets
  std::uint64_t hit_bytes = 0;   ///< uncompressed size of all hits

  // Not part of the content: the position of the first hit in this file, and the search's times.
  std::uint64_t block = 0, offset = 0;
  double cpu_seconds = 0, seconds = 0;

  /// Adds the counts of another part for the same model.
  void add(const ModelHead& other);
  /// The thresholds in force for this model.
  ModelThresholds thresholds(const Thresholds& rules) const;
};

/// Digest of everything in a model that a search uses.
Digest model_digest(const Hmm& hmm);

/// `content` receives the bytes of the content digest, `rest` the other ones.
void encode_head(const ModelHead& head, bool describe, std::string& content, std::string& rest);
bool decode_head(Decoder& decoder, bool describe, ModelHead& head);

/// The origin of a part. Merging does not compare it.
struct PartOrigin {
  std::string program, host, device, date;
  std::string model_file, target_file;
  /// Options as given, except those for outputs and parts; the value of a flag is empty.
  std::vector<std::pair<std::string, std::string>> options;
};
std::string encode_origin(const PartOrigin& origin);
bool decode_origin(std::string_view bytes, PartOrigin& origin);

// ---- the fixed beginning of the file ------------------------------------------------------------

// As in PNG: the top bit of the first byte, line ends and a control character reveal a transfer in
// text mode.
inline constexpr std::string_view kPartMagic = "\x89HJPT\r\n\x1a";

struct Prelude {
  char magic[8];
  std::uint32_t version, bytes;  // of the prelude
  std::uint64_t file_bytes;
  Digest content, search;
  PartPlace place;
  std::uint64_t hits, domains;
  std::uint64_t settings_bytes, settings_checksum;  // after the prelude
  std::uint64_t origin_offset, origin_bytes, origin_checksum;
  std::uint64_t table_offset, table_checksum;
  std::uint32_t hit_blocks, head_blocks;
  char zeros[48];
  std::uint64_t checksum;  // of all bytes before it
};
static_assert(sizeof(Digest) == 16 && sizeof(Prelude) == 256);

/// An entry in the table of blocks: all hit blocks, then all head blocks, in model order.
struct BlockEntry {
  std::uint64_t offset;
  std::uint32_t stored, raw;  // bytes, compressed and uncompressed
  std::uint64_t checksum;     // of the stored bytes
  std::uint64_t first;        // heads: index of the first model; hits: number before this block
};
static_assert(sizeof(BlockEntry) == 32);

/// A block ends with the record that reaches this size.
inline constexpr std::size_t kBlockBytes = std::size_t{64} << 10;
/// A longer block is damaged: all records are far shorter.
inline constexpr std::uint32_t kLargestBlock = std::uint32_t{1} << 30;

}  // namespace hmmjit::parts
