#include "search/model_cutoffs.hpp"

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "core/ascii.hpp"
#include "core/numbers.hpp"
#include "io/byte_source.hpp"
#include "io/columns.hpp"
#include "io/hmm_file.hpp"
#include "io/hmm_parsing.hpp"
#include "search/hits.hpp"

namespace hmmjit {
namespace {

constexpr std::size_t kNames = 5;

void add(MissingCutoffModels& found, const std::string& name, bool has) {
  ++found.models;
  if (has) return;
  if (++found.without <= kNames) found.names.push_back(name);
}

}  // namespace

Result<CutoffTable> read_cutoff_table(const std::string& path) {
  HMMJIT_ASSIGN(std::unique_ptr<ByteSource> source, open_byte_source(path));
  ColumnReader rows(std::move(source));
  CutoffTable table;
  bool rows_seen = false;
  const auto unusable = [&](const std::string& what) {
    return fail(ErrorCode::kInput, what, rows.where(),
                "give a model, its score, and full or domain in each line, as KOfam's ko_list");
  };
  for (bool first = true;; first = false) {
    HMMJIT_ASSIGN(const bool more, rows.next());
    if (!more) break;
    const std::vector<std::string_view>& columns = rows.columns();
    if (columns.size() < 2)
      return unusable("a line with a single column in the table of cutoffs");
    const std::string_view model = columns[0], score = columns[1];
    const std::string_view kind = columns.size() > 2 ? columns[2] : "full";
    const auto value = static_cast<float>(parse_real(score).value_or(NAN));
    const bool number = std::isfinite(value);
    if (!number && score != "-") {
      if (first && !score.empty() && is_ascii_letter(score.front())) continue;  // names of columns
      return unusable(fmt::format("the score \"{}\" of model {} is no number", score, model));
    }
    rows_seen = true;
    if (!number || kind == "-") continue;
    // The score no target and no domain fails to reach.
    constexpr float kAny = -999.0f;
    if (kind != "full" && kind != "domain")
      return unusable(
          fmt::format("\"{}\" of model {} is neither full nor domain", kind, model));
    const Cutoff cutoff = kind == "full" ? Cutoff{value, kAny} : Cutoff{kAny, value};
    if (!table.emplace(model, cutoff).second)
      return unusable(fmt::format("a second score of model {}", model));
  }
  if (!rows_seen)
    return fail(ErrorCode::kInput, "no model in the table of cutoffs", path,
                "give a table such as KOfam's ko_list");
  return table;
}

Result<MissingCutoffModels> models_without_cutoffs(const std::string& path,
                                                   const Thresholds& rules) {
  MissingCutoffModels found;
  HMMJIT_ASSIGN(HmmReader reader, HmmReader::open(path));
  if (reader.format() == HmmFormat::kBinary3) {
    for (;;) {
      HMMJIT_ASSIGN(const std::optional<Hmm> hmm, reader.next());
      if (!hmm) return found;
      add(found, hmm->name, cutoff_of(*hmm, rules).has_value());
    }
  }
  HMMJIT_ASSIGN(std::unique_ptr<ByteSource> source, open_byte_source(reader.name()));
  BufferedInput input(std::move(source));
  input.limit_lines(kLongestModelLine);
  const std::string_view tag = cutoff_name(rules.cutoffs);
  std::string name, accession;
  bool has = false;
  std::string_view line;
  for (;;) {
    HMMJIT_ASSIGN(const bool more, hmm_parsing::data_line(input, &line));
    if (!more) return found;
    hmm_parsing::Tokens tokens(line);
    const std::string_view first = tokens.next();
    if (first == "NAME") {
      name = tokens.next();
    } else if (first == "ACC") {
      accession = tokens.next();
    } else if (first == tag) {
      has = true;
    } else if (first == "//") {
      if (rules.table) has = find_cutoff(*rules.table, name, accession).has_value();
      add(found, name, has);
      has = false;
      accession.clear();
    }
  }
}

}  // namespace hmmjit
