#include "report/page_results.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/numbers.hpp"
#include "core/exact_text.hpp"
#include "report/numbers.hpp"

namespace hmmjit {
namespace {

// The number that a result file gives: the shortest text of a float, read as a double.
double as_written(double value) { return value; }
double as_written(float value) {
  std::string text;
  text::exact(text, value);
  return parse_real(text).value_or(static_cast<double>(value));
}

PageDomain make_domain(const domain::Domain& d, int number, bool included, const HitList& hits,
                       bool alignments) {
  PageDomain out;
  out.number = number;
  out.included = included;
  out.c_evalue = as_written(conditional_e_value(d, hits));
  out.i_evalue = as_written(independent_e_value(d, hits));
  out.score = as_written(d.bits);
  out.accuracy = as_written(mean_accuracy(d));
  out.hmm_from = d.hmm_from;
  out.hmm_to = d.hmm_to;
  out.ali_from = d.iali;
  out.ali_to = d.jali;
  out.env_from = d.ienv;
  out.env_to = d.jenv;
  if (alignments) {
    out.model = d.alignment.model;
    out.match = d.alignment.match;
    out.target = d.alignment.sequence;
    out.pp = d.alignment.pp;
  }
  return out;
}

}  // namespace

void add_to_page(Page& page, const ModelResult& result, bool alignments) {
  const HitList& hits = result.hits;
  const std::size_t index = page.models.size();
  PageModel& model = page.models.emplace_back();
  model.name = result.model.name;
  model.accession = result.model.accession.value_or("");
  model.description = result.model.description.value_or("");
  model.length = result.model.M;
  model.reported = hits.reported;
  model.included = hits.included;
  model.targets = hits.counters.targets;
  model.msv = hits.counters.msv;
  model.bias = hits.counters.bias;
  model.viterbi = hits.counters.viterbi;
  model.forward = hits.counters.forward;
  for (const Hit& hit : hits.hits) {
    if (!hit.flags.reported) continue;
    PageTarget& target = page.targets[hit.index];
    target.name = hit.name;
    target.accession = hit.accession;
    target.description = hit.description;
    target.length = hit.length;
    PageHit& added = target.hits.emplace_back();
    added.model = index;
    added.included = hit.flags.included;
    added.evalue = as_written(target_e_value(hit, hits));
    added.score = as_written(hit.score.bits);
    added.bias = as_written(target_bias(hit, result));
    for_each_reported_domain(hit, [&](const domain::Domain& d, int number, bool included) {
      added.domains.push_back(make_domain(d, number, included, hits, alignments));
    });
  }
}

void keep_best(Page& page, std::size_t top) {
  if (top == 0 || page.targets.size() <= top) return;
  std::vector<std::pair<double, std::uint64_t>> order;
  for (const auto& [index, target] : page.targets) order.emplace_back(target.best_evalue(), index);
  std::ranges::sort(order);
  for (std::size_t i = top; i < order.size(); ++i) page.targets.erase(order[i].second);
  page.left_out = order.size() - top;
}

void describe_run(Page& page, const RunDescription& run, const RunTotals& totals) {
  page.title = page_title(run.query_file, run.target_file);
  page.run.emplace_back("models", run.query_file);
  page.run.emplace_back("targets", run.target_file);
  page.run.emplace_back("command", run.option_settings);
  page.run.emplace_back("folder", run.folder);
  page.run.emplace_back("date", run.date);
  page.run.emplace_back("version", "hmmjit " + run.version);
  const auto n = [](std::uint64_t value) { return std::to_string(value); };
  page.run.emplace_back("searched", n(totals.models) + " models, " + n(totals.targets) +
                                        " targets, " + n(totals.residues) + " residues");
  page.run.emplace_back("reported", n(totals.targets_reported) +
                                        " hits, each of a model in a target (" +
                                        n(totals.targets_included) + " included), " +
                                        n(totals.domains_reported) + " domains (" +
                                        n(totals.domains_included) + " included)");
}

}  // namespace hmmjit
