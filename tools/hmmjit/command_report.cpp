// `hmmjit report`: a result file of `hmmjit search` as one HTML page.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "core/diagnostics.hpp"
#include "core/output_file.hpp"
#include "hmmjit/command_line.hpp"
#include "hmmjit/suggestion.hpp"
#include "io/byte_source.hpp"
#include "report/html_page.hpp"
#include "report/page_results.hpp"
#include "result_file.hpp"

namespace hmmjit::tools {
namespace {

struct ReportArguments {
  std::vector<std::string> results;
  std::string output, title;
  std::size_t top = 0;
  bool included = false;
  std::vector<std::string> models;
  double e_value = std::numeric_limits<double>::infinity();
};

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
  std::vector<Page> pages;
  std::vector<NamedFile> inputs;
  for (const std::string& path : arguments.results) {
    HMMJIT_ASSIGN(std::unique_ptr<ByteSource> source, open_byte_source(path));
    HMMJIT_ASSIGN(std::vector<Page> read, read_results(std::move(source)));
    std::ranges::move(read, std::back_inserter(pages));
    inputs.push_back({"result to be shown", path});
  }
  Page page;
  if (pages.size() == 1) {
    page = std::move(pages.front());
  } else {
    page.title = fmt::format("{} results of hmmjit search", pages.size());
    for (Page& one : pages) {
      const std::string name = one.results.front();
      add_result(page, std::move(one), name);
    }
  }
  HMMJIT_TRY(choose(page, arguments));
  keep_best(page, arguments.top);
  if (!arguments.title.empty()) page.title = arguments.title;
  std::string output = arguments.output;
  if (output.empty()) {
    if (arguments.results.size() > 1)
      return fail(ErrorCode::kUsage, "no name for the page of several results", {}, "add -o FILE");
    if (arguments.results.front() == "-")
      return fail(ErrorCode::kUsage, "no name for the page of standard input", {}, "add -o FILE");
    output = arguments.results.front() + ".html";
  }
  const NamedFile outputs[] = {{"-o", output}};
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
      "Turns results of 'hmmjit search' (--json or --tsv) into one HTML page with an overview, "
      "domain "
      "architectures, tables that can be sorted and filtered, and alignments.",
      "hmmjit report"};
  app.add_option("result", given.results,
                 "files written by --json or --tsv, several on one page; - for stdin")
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
  const Status status = make_report(given);
  return status ? 0 : report_failure("report", status.error());
}

}  // namespace hmmjit::tools
