// `hmmjit report`: a result file of `hmmjit search` as one HTML page.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <utility>

#include "core/diagnostics.hpp"
#include "core/numbers.hpp"
#include "core/output_file.hpp"
#include "hmmjit/command_line.hpp"
#include "hmmjit/suggestion.hpp"
#include "io/byte_source.hpp"
#include "report/html_page.hpp"
#include "report/page_results.hpp"

namespace hmmjit::tools {
namespace {

using Json = nlohmann::json;

struct ReportArguments {
  std::string result, output, title;
  std::size_t top = 0;
  bool included = false;
  std::vector<std::string> models;
  double e_value = std::numeric_limits<double>::infinity();
};

std::unexpected<Error> unreadable(const BufferedInput& input, std::string what) {
  return fail(ErrorCode::kInput, std::move(what), input.where(),
              "give a file written by hmmjit search --json or --tsv");
}

std::string text_of(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// Infinite E-values are null in JSON.
double number_of(const Json& object, const char* name) {
  const Json& value = object.at(name);
  return value.is_null() ? std::numeric_limits<double>::infinity() : value.get<double>();
}

// Fails where the value is no integer or does not fit: what it would be cut to means nothing.
template <typename Integer>
Integer integer_of(const Json& object, const char* name) {
  const Json& value = object.at(name);
  if (value.is_number_unsigned()) {
    if (const auto number = value.get<std::uint64_t>(); std::in_range<Integer>(number))
      return static_cast<Integer>(number);
  } else if (value.is_number_integer()) {
    if (const auto number = value.get<std::int64_t>(); std::in_range<Integer>(number))
      return static_cast<Integer>(number);
  }
  throw std::range_error(name);
}

PageDomain read_domain(const Json& json) {
  PageDomain domain;
  domain.number = integer_of<int>(json, "number");
  domain.included = json.at("included").get<bool>();
  domain.c_evalue = number_of(json, "c_evalue");
  domain.i_evalue = number_of(json, "i_evalue");
  domain.score = number_of(json, "score");
  domain.accuracy = number_of(json, "accuracy");
  domain.hmm_from = integer_of<int>(json, "hmm_from");
  domain.hmm_to = integer_of<int>(json, "hmm_to");
  domain.ali_from = integer_of<int>(json, "ali_from");
  domain.ali_to = integer_of<int>(json, "ali_to");
  domain.env_from = integer_of<int>(json, "env_from");
  domain.env_to = integer_of<int>(json, "env_to");
  if (const auto found = json.find("alignment"); found != json.end()) {
    domain.model = text_of(*found, "model");
    domain.match = text_of(*found, "match");
    domain.target = text_of(*found, "target");
    domain.pp = text_of(*found, "pp");
  }
  return domain;
}

PageModel read_model(const Json& json) {
  PageModel model;
  model.name = json.at("name").get<std::string>();
  model.accession = text_of(json, "accession");
  model.description = text_of(json, "description");
  model.length = integer_of<int>(json, "length");
  model.reported = integer_of<std::uint64_t>(json, "targets_reported");
  model.included = integer_of<std::uint64_t>(json, "targets_included");
  model.targets = integer_of<std::uint64_t>(json, "targets");
  const Json& passed = json.at("passed");
  model.msv = integer_of<std::uint64_t>(passed, "msv");
  model.bias = integer_of<std::uint64_t>(passed, "bias");
  model.viterbi = integer_of<std::uint64_t>(passed, "viterbi");
  model.forward = integer_of<std::uint64_t>(passed, "forward");
  return model;
}

void add_hit(Page& page, const Json& json) {
  PageTarget& target = page.targets[integer_of<std::uint64_t>(json, "index")];
  target.name = json.at("name").get<std::string>();
  target.accession = text_of(json, "accession");
  target.description = text_of(json, "description");
  target.length = integer_of<int>(json, "length");
  PageHit& hit = target.hits.emplace_back();
  hit.model = integer_of<std::size_t>(json, "model_index");
  hit.included = json.at("included").get<bool>();
  hit.evalue = number_of(json, "evalue");
  hit.score = number_of(json, "score");
  hit.bias = number_of(json, "bias");
  for (const Json& domain : json.at("domains")) hit.domains.push_back(read_domain(domain));
}

Result<Page> read_json(BufferedInput& input) {
  Page page;
  bool complete = false;
  std::string_view line;
  for (;;) {
    HMMJIT_ASSIGN(const bool more, input.line(&line));
    if (!more) break;
    if (line.empty()) continue;
    try {
      const Json json = Json::parse(line);
      const std::string record = json.at("record").get<std::string>();
      if (complete) return unreadable(input, "a line behind the last");
      if (record == "model") {
        page.models.push_back(read_model(json));
      } else if (record == "target") {
        add_hit(page, json);
        if (integer_of<std::size_t>(json, "model_index") >= page.models.size())
          return unreadable(input, "a target of a model that has not come yet");
      } else if (record == "run") {
        complete = true;
        for (const auto& [key, name] : {std::pair{"model_file", "models"},
                                        {"target_file", "targets"},
                                        {"options", "command"},
                                        {"folder", "folder"},
                                        {"date", "date"}})
          page.run.emplace_back(name, text_of(json, key));
        page.run.emplace_back("version", fmt::format("hmmjit {}", text_of(json, "version")));
        const auto count = [&](const char* key) { return integer_of<std::uint64_t>(json, key); };
        page.run.emplace_back("searched",
                              fmt::format("{} models, {} targets, {} residues", count("models"),
                                          count("targets"), count("residues")));
        page.run.emplace_back("reported",
                              fmt::format("{} targets ({} included), {} domains ({} included)",
                                          count("targets_reported"), count("targets_included"),
                                          count("domains_reported"), count("domains_included")));
        page.title = text_of(json, "program");
      }  // records of later versions are not ours to refuse
    } catch (const Json::exception&) {
      return unreadable(input, "not a record of a result file");
    } catch (const std::range_error& error) {
      return unreadable(input, fmt::format("\"{}\" is no number of its kind", error.what()));
    }
  }
  if (!complete) return unreadable(input, "the result is not complete: the run record is missing");
  return page;
}

// Undoes tsv_field of report/exact_text.hpp.
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

Result<Page> read_tsv(BufferedInput& input) {
  Page page;
  page.title = "hmmjit search";
  std::string_view line;
  HMMJIT_TRY(input.line(&line));
  const std::string head(line);
  const std::vector<std::string_view> columns = fields_of(head);
  std::map<std::int64_t, std::size_t> models;  // index in the model file, place in the page
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
    const auto [model, is_new] = models.emplace(integer("model_index"), page.models.size());
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
    if (target.hits.empty() || target.hits.back().model != model->second) {
      PageHit& hit = target.hits.emplace_back();
      hit.model = model->second;
      hit.included = integer("included") != 0;
      hit.evalue = real("evalue");
      hit.score = real("score");
      hit.bias = real("bias");
      ++page.models[hit.model].reported;
      page.models[hit.model].included += hit.included;
    }
    if (!field("domain").empty()) {
      PageDomain& domain = target.hits.back().domains.emplace_back();
      const auto number = [&](std::string_view name) { return static_cast<int>(integer(name)); };
      domain.number = number("domain");
      domain.included = number("domain_included") != 0;
      domain.c_evalue = real("c_evalue");
      domain.i_evalue = real("i_evalue");
      domain.score = real("domain_score");
      domain.accuracy = real("accuracy");
      domain.hmm_from = number("hmm_from");
      domain.hmm_to = number("hmm_to");
      domain.ali_from = number("ali_from");
      domain.ali_to = number("ali_to");
      domain.env_from = number("env_from");
      domain.env_to = number("env_to");
    }
    if (!wrong.empty())
      return unreadable(input, fmt::format("column {} is missing or not a number", wrong));
  }
  return page;
}

Result<Page> read_result(const std::string& path) {
  HMMJIT_ASSIGN(std::unique_ptr<ByteSource> source, open_byte_source(path));
  BufferedInput input(std::move(source));
  HMMJIT_ASSIGN(const std::string_view head, input.peek());
  if (head.starts_with('{')) return read_json(input);
  if (head.starts_with("target\t")) return read_tsv(input);
  return unreadable(input, "neither JSON lines nor a table of hmmjit search");
}

// Leaves the domains that are asked for, and the targets and hits that have any.
Status choose(Page& page, const ReportArguments& arguments) {
  if (!arguments.included && arguments.models.empty() && std::isinf(arguments.e_value)) return {};
  std::vector<std::string> names;
  for (const PageModel& model : page.models) names.push_back(model.name);
  for (const std::string& name : arguments.models) {
    if (std::ranges::find(names, name) == names.end())
      return fail(ErrorCode::kUsage, fmt::format("no model \"{}\" in the result", name), "--model",
                  did_you_mean(name, names, "the page without --model lists them"));
  }
  for (auto& [index, target] : page.targets) {
    for (PageHit& hit : target.hits) {
      const bool wanted =
          arguments.models.empty() ||
          std::ranges::find(arguments.models, names[hit.model]) != arguments.models.end();
      std::erase_if(hit.domains, [&](const PageDomain& domain) {
        return !wanted || (arguments.included && !(hit.included && domain.included)) ||
               domain.i_evalue > arguments.e_value;
      });
    }
    std::erase_if(target.hits, [](const PageHit& hit) { return hit.domains.empty(); });
  }
  std::erase_if(page.targets, [](const auto& entry) { return entry.second.hits.empty(); });
  std::string shown;
  if (arguments.included) shown += "included domains; ";
  if (!std::isinf(arguments.e_value)) shown += fmt::format("i-Evalue <= {}; ", arguments.e_value);
  if (!arguments.models.empty())
    shown += fmt::format("models {}; ", fmt::join(arguments.models, ", "));
  shown.resize(shown.size() - 2);
  page.run.emplace_back("on this page", shown);
  return {};
}

Status make_report(const ReportArguments& arguments) {
  HMMJIT_ASSIGN(Page page, read_result(arguments.result));
  HMMJIT_TRY(choose(page, arguments));
  keep_best(page, arguments.top);
  if (!arguments.title.empty()) page.title = arguments.title;
  std::string output = arguments.output;
  if (output.empty()) {
    if (arguments.result == "-")
      return fail(ErrorCode::kUsage, "no name for the page of standard input", {}, "add -o FILE");
    output = arguments.result + ".html";
  }
  const NamedFile outputs[] = {{"-o", output}},
                  inputs[] = {{"result to be shown", arguments.result}};
  HMMJIT_TRY(check_outputs(outputs, inputs));
  HMMJIT_ASSIGN(OutputFile file, OutputFile::create(output));
  write_html_page(page, [&file](std::string_view piece) { file.write(piece); });
  HMMJIT_TRY(file.commit());
  if (arguments.output.empty()) diagnose("hmmjit report: wrote {}\n", output);
  return {};
}

}  // namespace

int command_report(const std::vector<std::string>& arguments) {
  ReportArguments given;
  CLI::App app{
      "Turns a result of 'hmmjit search' (--json or --tsv) into one HTML page with an overview, "
      "domain "
      "architectures, tables that can be sorted and filtered, and alignments.",
      "hmmjit report"};
  app.add_option("result", given.result, "file written by --json or --tsv; - for stdin")
      ->required();
  app.add_option("-o,--output", given.output, "page to write [RESULT.html]");
  app.add_option("--title", given.title, "title of the page");
  app.add_option("--top", given.top, "show only the N targets with the best E-values [all]")
      ->check(CLI::PositiveNumber);
  app.add_flag("--included", given.included, "show only included domains");
  app.add_option("--model", given.models, "show only this model; may be repeated")
      ->allow_extra_args(false);
  app.add_option("-E", given.e_value, "show only domains of at most this i-Evalue [all]")
      ->check(CLI::PositiveNumber);
  if (const auto status = parse_command_line(app, arguments)) return *status;
  if (const Status status = make_report(given); !status) {
    diagnose("hmmjit report: {}\n", status.error().to_string());
    return static_cast<int>(status.error().code);
  }
  return 0;
}

}  // namespace hmmjit::tools
