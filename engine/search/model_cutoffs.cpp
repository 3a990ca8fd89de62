#include "search/model_cutoffs.hpp"

#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "io/byte_source.hpp"
#include "io/hmm_file.hpp"
#include "search/hits.hpp"

namespace hmmjit {
namespace {

constexpr std::size_t kNames = 5;

void add(MissingCutoffModels& found, const std::string& name, bool has) {
  ++found.models;
  if (has) return;
  if (++found.without <= kNames) found.names.push_back(name);
}

// A line "TAG value": true and the value's first word.
bool tagged(std::string_view line, std::string_view tag, std::string_view* word) {
  if (!line.starts_with(tag)) return false;
  line.remove_prefix(tag.size());
  const std::size_t from = line.find_first_not_of(" \t");
  if (from == 0 || from == line.npos) return false;
  line.remove_prefix(from);
  *word = line.substr(0, line.find_first_of(" \t\r"));
  return true;
}

}  // namespace

Result<MissingCutoffModels> models_without_cutoffs(const std::string& path, ModelCutoffs cutoffs) {
  MissingCutoffModels found;
  HMMJIT_ASSIGN(HmmReader reader, HmmReader::open(path));
  if (reader.format() == HmmFormat::kBinary3) {
    for (;;) {
      HMMJIT_ASSIGN(const std::optional<Hmm> hmm, reader.next());
      if (!hmm) return found;
      add(found, hmm->name, cutoff_of(*hmm, cutoffs).has_value());
    }
  }
  HMMJIT_ASSIGN(std::unique_ptr<ByteSource> source, open_byte_source(reader.name()));
  BufferedInput input(std::move(source));
  input.limit_lines(kLongestModelLine);
  const std::string_view tag = cutoff_name(cutoffs);
  std::string name;
  bool has = false;
  std::string_view line, word;
  for (;;) {
    HMMJIT_ASSIGN(const bool more, input.line(&line));
    if (!more) return found;
    if (tagged(line, "NAME", &word)) {
      name = word;
    } else if (tagged(line, tag, &word)) {
      has = true;
    } else if (line.starts_with("//")) {
      add(found, name, has);
      has = false;
    }
  }
}

}  // namespace hmmjit
