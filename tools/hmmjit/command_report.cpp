// `hmmjit report`: shows a result file of `hmmjit search` as an HTML page.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/diagnostics.hpp"
#include "core/output_file.hpp"
#include "hmmjit/command.hpp"
#include "io/byte_source.hpp"
#include "report/html_page.hpp"
#include "report/page_results.hpp"
#include "result_file.hpp"
#include "search_inputs.hpp"

namespace hmmjit::tools {
namespace {

// Keeps the requested domains, and targets and hits with any of them.
Status choose(Page& page, const ParsedOptions& options) {
  const bool included = options.is_set("--included");
  const std::vector<std::string> models = options.list("--model");
  const double e_value = options.given_real("-E").value_or(std::numeric_limits<double>::infinity());
  if (!included && models.empty() && std::isinf(e_value)) return {};
  std::vector<std::string> names;
  for (const PageModel& model : page.models) names.push_back(model.name);
  for (const std::string& name : models) {
    if (std::ranges::find(names, name) == names.end())
      return fail(ErrorCode::kUsage, fmt::format("no model \"{}\" in the result", name), "--model",
                  did_you_mean(name, names, "the page without --model lists them"));
  }
  for (auto& [index, target] : page.targets) {
    for (PageHit& hit : target.hits) {
      const bool wanted =
          models.empty() || std::ranges::find(models, names[hit.model]) != models.end();
      std::erase_if(hit.domains, [&](const PageDomain& domain) {
        return !wanted || (included && !(hit.included && domain.included)) ||
               domain.i_evalue > e_value;
      });
    }
    std::erase_if(target.hits, [](const PageHit& hit) { return hit.domains.empty(); });
  }
  std::erase_if(page.targets, [](const auto& entry) { return entry.second.hits.empty(); });
  std::string shown;
  if (included) shown += "included domains; ";
  if (!std::isinf(e_value)) shown += fmt::format("i-Evalue <= {}; ", e_value);
  if (!models.empty()) shown += fmt::format("models {}; ", fmt::join(models, ", "));
  shown.resize(shown.size() - 2);
  page.run.emplace_back("on this page", shown);
  return {};
}

// The last `parts` components of a path.
std::string tail(const std::string& path, std::size_t parts) {
  std::size_t slash = path.npos;
  for (; parts > 0; --parts) {
    if (slash == 0 || (slash = path.rfind('/', slash - 1)) == path.npos) return path;
  }
  return path.substr(slash + 1);
}

// Short distinct names of the results: file names, with folders as needed. Numbers results of the
// same file.
std::vector<std::string> names_of(const std::vector<Page>& pages) {
  std::set<std::string> paths;
  for (const Page& page : pages) paths.insert(page.results.front());
  std::set<std::string> tails;
  std::size_t parts = 0;
  while (tails.size() < paths.size()) {
    tails.clear();
    ++parts;
    for (const std::string& path : paths) tails.insert(tail(path, parts));
  }
  std::vector<std::string> names;
  std::map<std::string, int> seen;
  for (const Page& page : pages) {
    std::string& name = names.emplace_back(tail(page.results.front(), parts));
    if (const int number = ++seen[name]; number > 1) name += fmt::format(" ({})", number);
  }
  return names;
}

Result<int> make_report(const ParsedOptions& options) {
  std::vector<Page> pages;
  std::vector<NamedFile> inputs;
  for (const std::string& path : options.arguments())
    inputs.push_back({"result to be shown", path});
  HMMJIT_TRY(check_inputs(inputs));
  for (const std::string& path : options.arguments()) {
    HMMJIT_ASSIGN(std::unique_ptr<ByteSource> source, open_byte_source(path));
    HMMJIT_ASSIGN(std::vector<Page> read, read_results(std::move(source)));
    std::ranges::move(read, std::back_inserter(pages));
  }
  Page page;
  if (pages.size() == 1) {
    page = std::move(pages.front());
  } else {
    page.title = fmt::format("{} results of hmmjit search", pages.size());
    const std::vector<std::string> names = names_of(pages);
    for (std::size_t i = 0; i < pages.size(); ++i) add_result(page, std::move(pages[i]), names[i]);
  }
  HMMJIT_TRY(choose(page, options));
  if (options.is_set("--top")) keep_best(page, static_cast<std::size_t>(options.integer("--top")));
  if (options.is_set("--title")) page.title = options.text("--title");
  std::string output(options.text("--output"));
  if (output.empty()) {
    if (options.arguments().size() > 1)
      return fail(ErrorCode::kUsage, "no name for the page of several results", {}, "add -o FILE");
    if (options.arguments()[0] == "-")
      return fail(ErrorCode::kUsage, "no name for the page of standard input", {}, "add -o FILE");
    output = options.arguments()[0] + ".html";
  }
  const NamedFile outputs[] = {{"-o", output}};
  HMMJIT_TRY(check_outputs(outputs, inputs));
  HMMJIT_ASSIGN(OutputFile file, OutputFile::create(output));
  write_html_page(page, [&file](std::string_view piece) { file.write(piece); });
  HMMJIT_TRY(file.commit());
  if (!options.is_set("--output")) diagnose("hmmjit report: wrote {}\n", output);
  return 0;
}

}  // namespace

CommandSpec report_command() {
  return {"report",
          "turn results into one HTML page with domain architectures",
          {{"result", "files written by --json or --tsv, several on one page; - for stdin", true,
            true}},
          {help_option(),
           {kPlain, "--output,-o", "f", "page to write; default: RESULT.html"},
           {kPlain, "--title", "s", "title of the page"},
           {kPlain, "--top", "n n>0", "show only the <n> targets with the best E-values"},
           {kPlain, "--included", "", "show only included domains"},
           {kPlain, "--model", "s", "show only this model; may be repeated", kSeveral},
           {kPlain, "-E", "x x>0", "show only domains of at most this i-Evalue"}},
          make_report};
}

}  // namespace hmmjit::tools
