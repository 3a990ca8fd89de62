#include "result_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "core/numbers.hpp"

namespace hmmjit::tools {
namespace {

using JsonValue = nlohmann::json;

std::unexpected<Error> unreadable(const BufferedInput& input, std::string what) {
  return fail(ErrorCode::kInput, std::move(what),
              input.line_number() > 0 ? input.where() : input.name(),
              "give a file written by hmmjit search --json or --tsv");
}

std::string text_of(const JsonValue& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// JSON has null for infinite E-values.
double number_of(const JsonValue& object, const char* name) {
  const JsonValue& value = object.at(name);
  return value.is_null() ? std::numeric_limits<double>::infinity() : value.get<double>();
}

// Fails if the value is no integer or does not fit.
template <typename Integer>
Integer integer_of(const JsonValue& object, const char* name) {
  const JsonValue& value = object.at(name);
  if (value.is_number_unsigned()) {
    if (const auto number = value.get<std::uint64_t>(); std::in_range<Integer>(number))
      return static_cast<Integer>(number);
  } else if (value.is_number_integer()) {
    if (const auto number = value.get<std::int64_t>(); std::in_range<Integer>(number))
      return static_cast<Integer>(number);
  }
  throw std::range_error(name);
}

// Names of the numbers in both kinds of file.
template <typename Thing, typename Number>
using NamedNumber = std::pair<const char*, Number Thing::*>;
constexpr NamedNumber<PageDomain, double> kDomainValues[] = {{"c_evalue", &PageDomain::c_evalue},
                                                             {"i_evalue", &PageDomain::i_evalue},
                                                             {"accuracy", &PageDomain::accuracy}};
constexpr NamedNumber<PageDomain, int> kDomainPlaces[] = {
    {"hmm_from", &PageDomain::hmm_from}, {"hmm_to", &PageDomain::hmm_to},
    {"ali_from", &PageDomain::ali_from}, {"ali_to", &PageDomain::ali_to},
    {"env_from", &PageDomain::env_from}, {"env_to", &PageDomain::env_to}};
constexpr NamedNumber<PageHit, double> kHitValues[] = {
    {"evalue", &PageHit::evalue}, {"score", &PageHit::score}, {"bias", &PageHit::bias}};

PageDomain read_domain(const JsonValue& json) {
  PageDomain domain;
  domain.number = integer_of<int>(json, "number");
  domain.included = json.at("included").get<bool>();
  if (const auto kept = json.find("kept"); kept != json.end()) domain.kept = kept->get<bool>();
  domain.score = number_of(json, "score");
  for (const auto& [name, value] : kDomainValues) domain.*value = number_of(json, name);
  for (const auto& [name, place] : kDomainPlaces) domain.*place = integer_of<int>(json, name);
  if (const auto found = json.find("alignment"); found != json.end()) {
    domain.model = text_of(*found, "model");
    domain.match = text_of(*found, "match");
    domain.target = text_of(*found, "target");
    domain.pp = text_of(*found, "pp");
  }
  return domain;
}

PageModel read_model(const JsonValue& json) {
  PageModel model;
  model.name = json.at("name").get<std::string>();
  model.accession = text_of(json, "accession");
  model.description = text_of(json, "description");
  model.length = integer_of<int>(json, "length");
  model.reported = integer_of<std::uint64_t>(json, "targets_reported");
  model.included = integer_of<std::uint64_t>(json, "targets_included");
  model.targets = integer_of<std::uint64_t>(json, "targets");
  const JsonValue& passed = json.at("passed");
  model.msv = integer_of<std::uint64_t>(passed, "msv");
  model.bias = integer_of<std::uint64_t>(passed, "bias");
  model.viterbi = integer_of<std::uint64_t>(passed, "viterbi");
  model.forward = integer_of<std::uint64_t>(passed, "forward");
  return model;
}

PageHit& add_hit(Page& page, const JsonValue& json) {
  PageTarget& target = page.targets[integer_of<std::uint64_t>(json, "index")];
  target.name = json.at("name").get<std::string>();
  target.accession = text_of(json, "accession");
  target.description = text_of(json, "description");
  target.length = integer_of<int>(json, "length");
  PageHit& hit = target.hits.emplace_back();
  hit.model = integer_of<std::size_t>(json, "model_index");
  hit.included = json.at("included").get<bool>();
  for (const auto& [name, value] : kHitValues) hit.*value = number_of(json, name);
  for (const JsonValue& domain : json.at("domains")) hit.domains.push_back(read_domain(domain));
  return hit;
}

Result<std::vector<Page>> read_json(BufferedInput& input) {
  std::vector<Page> pages(1);
  std::map<std::size_t, std::size_t> places;  // of the models in the page, by their index
  std::string_view line;
  for (;;) {
    HMMJIT_ASSIGN(const bool more, input.line(&line));
    if (!more) break;
    if (line.empty()) continue;
    try {
      const JsonValue json = JsonValue::parse(line);
      const std::string record = json.at("record").get<std::string>();
      Page& page = pages.back();
      if (record == "model") {
        places[integer_of<std::size_t>(json, "index")] = page.models.size();
        page.models.push_back(read_model(json));
      } else if (record == "target") {
        PageHit& hit = add_hit(page, json);
        const bool scan = json.contains("model_length");  // a scan has no records of models
        if (scan && places.emplace(hit.model, page.models.size()).second)
          page.models.emplace_back();
        const auto place = places.find(hit.model);
        if (place == places.end())
          return unreadable(input, "a target of a model that has not come yet");
        hit.model = place->second;
        if (scan) {
          PageModel& model = page.models[hit.model];
          model.name = text_of(json, "model");
          model.accession = text_of(json, "model_accession");
          model.length = integer_of<int>(json, "model_length");
          ++model.reported;
          model.included += hit.included;
        }
      } else if (record == "run") {
        for (const auto& [key, name] : {std::pair{"model_file", "models"},
                                        {"target_file", "targets"},
                                        {"options", "command"},
                                        {"folder", "folder"},
                                        {"date", "date"}})
          page.run.emplace_back(name, text_of(json, key));
        page.run.emplace_back("version", fmt::format("hmmjit {}", text_of(json, "version")));
        const auto count = [&](const char* key) { return integer_of<std::uint64_t>(json, key); };
        const char* const size = json.contains("positions") ? "positions" : "residues";
        page.run.emplace_back("searched",
                              fmt::format("{} models, {} targets, {} {}", count("models"),
                                          count("targets"), count(size), size));
        page.run.emplace_back("reported",
                              fmt::format("{} hits, each of a model in a target ({} included), {} "
                                          "domains ({} included)",
                                          count("targets_reported"), count("targets_included"),
                                          count("domains_reported"), count("domains_included")));
        page.title = page_title(text_of(json, "model_file"), text_of(json, "target_file"));
        page.results.push_back(text_of(json, "target_file"));
        pages.emplace_back();  // for a further search
        places.clear();
      }  // accept records of later versions
    } catch (const JsonValue::exception&) {
      return unreadable(input, "not a record of a result file");
    } catch (const std::range_error& error) {
      return unreadable(input, fmt::format("\"{}\" is no number of its kind", error.what()));
    }
  }
  const Page last = std::move(pages.back());
  pages.pop_back();
  if (pages.empty() || !last.models.empty())
    return unreadable(input, "the result is not complete: the run record is missing");
  return pages;
}

// Undoes tsv_field of core/exact_text.hpp.
std::string unquoted(std::string_view field) {
  if (field.size() < 2 || field.front() != '"') return std::string(field);
  std::string out;
  for (std::size_t i = 1; i + 1 < field.size(); ++i) {
    out += field[i];
    if (field[i] == '"') ++i;  // the second of two
  }
  return out;
}

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  for (;;) {
    const std::size_t tab = line.find('\t');
    fields.push_back(line.substr(0, tab));
    if (tab == line.npos) return fields;
    line.remove_prefix(tab + 1);
  }
}

Result<std::vector<Page>> read_tsv(BufferedInput& input) {
  struct Table {
    Page page;
    std::map<std::int64_t, std::size_t> models;  // index in the model file, place in the page
  };
  std::vector<std::string> files;  // in the order of their first row
  std::map<std::string, Table> results;
  std::string_view line;
  HMMJIT_TRY(input.line(&line));
  const std::string head(line);
  const std::vector<std::string_view> columns = fields_of(head);
  const bool by_file = std::ranges::find(columns, "target_file") != columns.end();
  const bool kept = std::ranges::find(columns, "kept") != columns.end();
  for (;;) {
    HMMJIT_ASSIGN(const bool more, input.line(&line));
    if (!more) break;
    const std::vector<std::string_view> fields = fields_of(line);
    if (fields.size() != columns.size())
      return unreadable(input, fmt::format("{} fields, {} wanted", fields.size(), columns.size()));
    std::string wrong;
    const auto field = [&](std::string_view name) {
      const auto found = std::ranges::find(columns, name);
      if (found == columns.end()) wrong = name;
      return found == columns.end() ? std::string_view()
                                    : fields[static_cast<std::size_t>(found - columns.begin())];
    };
    const auto real = [&](std::string_view name) {
      const auto value = parse_real(field(name));
      if (!value) wrong = name;
      return value.value_or(0);
    };
    const auto integer = [&](std::string_view name) {
      const auto value = parse_int(field(name));
      if (!value) wrong = name;
      return value.value_or(0);
    };
    const std::string file = by_file ? unquoted(field("target_file")) : std::string();
    const auto [result, is_new_file] = results.try_emplace(file);
    if (is_new_file) files.push_back(file);
    Page& page = result->second.page;
    const auto [model, is_new] =
        result->second.models.emplace(integer("model_index"), page.models.size());
    if (is_new) {
      PageModel& added = page.models.emplace_back();
      added.name = unquoted(field("model"));
      added.accession = unquoted(field("model_accession"));
      added.length = static_cast<int>(integer("model_length"));
    }
    PageTarget& target = page.targets[static_cast<std::uint64_t>(integer("target_index"))];
    target.name = unquoted(field("target"));
    target.accession = unquoted(field("target_accession"));
    target.description = unquoted(field("description"));
    target.length = static_cast<int>(integer("target_length"));
    // nhmmer has several hits of a model in a target, each with one domain.
    if (target.hits.empty() || target.hits.back().model != model->second ||
        integer("domain") == 1) {
      PageHit& hit = target.hits.emplace_back();
      hit.model = model->second;
      hit.included = integer("included") != 0;
      for (const auto& [name, value] : kHitValues) hit.*value = real(name);
      ++page.models[hit.model].reported;
      page.models[hit.model].included += hit.included;
    }
    PageDomain& domain = target.hits.back().domains.emplace_back();
    domain.number = static_cast<int>(integer("domain"));
    domain.included = integer("domain_included") != 0;
    if (kept) domain.kept = integer("kept") != 0;
    domain.score = real("domain_score");
    for (const auto& [name, value] : kDomainValues) domain.*value = real(name);
    for (const auto& [name, place] : kDomainPlaces) domain.*place = static_cast<int>(integer(name));
    if (!wrong.empty())
      return unreadable(input, fmt::format("column {} is missing or not a number", wrong));
  }
  std::vector<Page> pages;
  if (files.empty()) files.emplace_back();
  for (const std::string& file : files) {
    Page& page = pages.emplace_back(std::move(results[file].page));
    page.title = file.empty() ? input.name() : page_title(input.name(), file);
    page.results.push_back(file.empty() ? input.name() : file);
  }
  return pages;
}

}  // namespace

Result<std::vector<Page>> read_results(std::unique_ptr<ByteSource> source) {
  BufferedInput input(std::move(source));
  HMMJIT_ASSIGN(const std::string_view head, input.peek());
  if (head.starts_with('{')) return read_json(input);
  if (head.starts_with("target\t")) return read_tsv(input);
  return fail(ErrorCode::kInput, "neither JSON lines nor a table of hmmjit search", input.name(),
              "give a file written by hmmjit search --json or --tsv");
}

}  // namespace hmmjit::tools
