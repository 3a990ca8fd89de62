#include "report/tables.hpp"

#include <algorithm>
#include <compare>

#include "report/kept_rows.hpp"
#include "report/numbers.hpp"
#include "report/report_header.hpp"
#include "report/text.hpp"

namespace hmmjit {
namespace {

using domain::Domain;

constexpr std::string_view kDashes = "--------------------------------";
constexpr std::string_view dashes(std::size_t count) { return kDashes.substr(0, count); }

// The first four columns of a line, aligned by text::left or text::right. The '#' of a comment line
// takes one character of the first column.
template <typename Align>
void append_aligned(std::string& out, Align align, const NameColumns& names, const NameWidths& w,
                    std::string_view between, bool comment) {
  text::append(out, comment ? "#" : "", align(names.target, w.target - (comment ? 1 : 0)), ' ',
               align(names.target_accession, w.target_accession), between,
               align(names.query, w.query), ' ', align(names.query_accession, w.query_accession));
}

NameWidths widths_of(const ModelInfo& model, const HitList& hits) {
  return name_widths(model, hits.longest_name, hits.longest_accession);
}

NameColumns names_of(const Hit& hit, const ModelInfo& model) {
  return name_columns(model, hit.name, hit.accession);
}

}  // namespace

NameWidths name_widths(const ModelInfo& query, std::size_t longest_name,
                       std::size_t longest_accession) {
  return {std::max<std::size_t>(20, longest_name), std::max<std::size_t>(10, longest_accession),
          std::max<std::size_t>(20, query.name.size()),
          std::max<std::size_t>(10, query.accession ? query.accession->size() : 0)};
}

NameColumns name_columns(const ModelInfo& query, std::string_view target,
                         std::string_view accession) {
  return {target, text::or_dash(accession), query.name,
          query.accession ? text::or_dash(std::string_view(*query.accession)) : "-"};
}

void append_names(std::string& out, const NameColumns& names, const NameWidths& widths,
                  std::string_view between) {
  append_aligned(out, text::left, names, widths, between, false);
}

void append_name_titles(std::string& out, const NameWidths& widths, std::string_view between) {
  constexpr NameColumns kTitles{" target name", "accession", "query name", "accession"};
  append_aligned(out, text::left, kTitles, widths, between, true);
}

void append_name_rules(std::string& out, const NameWidths& widths, std::string_view between) {
  constexpr NameColumns kRules{dashes(19), dashes(10), dashes(20), dashes(10)};
  append_aligned(out, text::right, kRules, widths, between, true);
}

void append_target_table_header(std::string& out, const ModelInfo& model, const HitList& hits) {
  const NameWidths w = widths_of(model, hits);
  text::append(
      out, '#', text::blanks(w.target + w.query + w.target_accession + w.query_accession + 2),
      " --- full sequence ---- --- best 1 domain ---- --- domain number estimation ----\n");
  append_name_titles(out, w);
  out +=
      "   E-value  score  bias   E-value  score  bias   exp reg clu  ov env dom rep inc "
      "description of target\n";
  append_name_rules(out, w);
  out +=
      " --------- ------ ----- --------- ------ -----   --- --- --- --- --- --- --- --- "
      "---------------------\n";
}

void append_target_table(std::string& out, const HitLot& lot, bool marked) {
  const ModelInfo& model = lot.model();
  const HitList& hits = lot.totals();
  const NameWidths w = widths_of(model, hits);
  for (const Hit& hit : lot.hits) {
    if (!hit.flags.reported) continue;
    const Domain& best = hit.best_domain();
    if (marked) append_kept_mark(out, hit.reported_domains);
    append_names(out, names_of(hit, model), w);
    text::append_line(
        out, "",
        text::scores(target_e_value(hit, hits), hit.score.bits, target_bias(hit, lot.result)),
        text::scores(independent_e_value(best, hits), best.bits, bias_bits(best)),
        text::fixed(hit.score.expected_domains, 5, 1), text::integer(hit.score.regions, 3),
        text::integer(hit.score.clustered, 3), text::integer(hit.score.overlaps, 3),
        text::integer(hit.score.envelopes, 3), text::integer(hit.score.domains.size(), 3),
        text::integer(hit.reported_domains, 3), text::integer(hit.included_domains, 3),
        text::or_dash(hit.description));
  }
}

void append_domain_table_header(std::string& out, const ModelInfo& model, const HitList& hits) {
  const NameWidths w = widths_of(model, hits);
  text::append(
      out, '#', text::blanks(w.target + w.query - 1 + 15 + w.target_accession + w.query_accession),
      "  --- full sequence --- -------------- this domain -------------   hmm coord   ali coord   "
      "env coord\n");
  append_name_titles(out, w, "  tlen ");
  out +=
      "  qlen   E-value  score  bias   #  of  c-Evalue  i-Evalue  score  bias  from    to  from  "
      "  to  from    to  acc description of target\n";
  append_name_rules(out, w, " ----- ");
  out +=
      " ----- --------- ------ ----- --- --- --------- --------- ------ ----- ----- ----- ----- "
      "----- ----- ----- ---- ---------------------\n";
}

void append_domain_table(std::string& out, const HitLot& lot, bool marked) {
  const ModelInfo& model = lot.model();
  const HitList& hits = lot.totals();
  const NameWidths w = widths_of(model, hits);
  for (const Hit& hit : lot.hits) {
    if (!hit.flags.reported) continue;
    std::string length;
    text::append(length, ' ', text::integer(hit.length, 5), ' ');
    for_each_reported_domain(hit, [&](const Domain& domain, int number, bool) {
      if (marked) append_kept_mark(out, 1);
      append_names(out, names_of(hit, model), w, length);
      text::append_line(
          out, "", text::integer(model.M, 5),
          text::scores(target_e_value(hit, hits), hit.score.bits, target_bias(hit, lot.result)),
          text::integer(number, 3), text::integer(hit.reported_domains, 3),
          text::e_value(conditional_e_value(domain, hits)),
          text::scores(independent_e_value(domain, hits), domain.bits, bias_bits(domain)),
          text::integer(domain.hmm_from, 5), text::integer(domain.hmm_to, 5),
          text::integer(domain.iali, 5), text::integer(domain.jali, 5),
          text::integer(domain.ienv, 5), text::integer(domain.jenv, 5),
          text::fixed(mean_accuracy(domain), 4, 2), text::or_dash(hit.description));
    });
  }
}

namespace {

std::size_t pfam_width(const HitList& hits) { return std::max<std::size_t>(20, hits.longest_name); }

}  // namespace

void append_pfam_target_titles(std::string& out, const HitList& hits) {
  const std::size_t width = pfam_width(hits);
  text::append(out, "# Sequence scores\n# ---------------\n#\n# ", text::left("name", width - 1),
               "   bits   E-value   n   exp  bias    description\n# ",
               text::right(dashes(19), width - 1),
               " ------ --------- --- ----- -----    ---------------------\n");
}

void append_pfam_targets(std::string& out, const HitLot& lot, bool marked) {
  const HitList& hits = lot.totals();
  const std::size_t width = pfam_width(hits);
  for (const Hit& hit : lot.hits) {
    if (!hit.flags.reported) continue;
    if (marked) append_kept_mark(out, hit.reported_domains);
    text::append_line(
        out, text::left(hit.name, width), "", text::score(hit.score.bits),
        text::e_value(target_e_value(hit, hits)), text::integer(hit.score.domains.size(), 3),
        text::fixed(hit.score.expected_domains, 5, 1), text::bias(target_bias(hit, lot.result)),
        "  ", text::or_dash(hit.description));
  }
}

void append_pfam_domain_titles(std::string& out, const HitList& hits) {
  const std::size_t width = pfam_width(hits);
  text::append(
      out, "\n# Domain scores\n# -------------\n#\n# ", text::left(" name", width - 1),
      "   bits   E-value   hit  bias env-st env-en ali-st ali-en hmm-st hmm-en     description\n# ",
      text::right(dashes(19), width - 1),
      " ------ --------- ----- ----- ------ ------ ------ ------ ------ ------      "
      "---------------------\n");
}

bool stands_before(const PfamDomain& a, const PfamDomain& b) {
  if (const auto order = std::weak_order(b.key, a.key); order != 0) return order < 0;
  if (const int order = a.name.compare(b.name); order != 0) return order < 0;
  if (a.forward != b.forward) return a.forward;
  return a.iali < b.iali;
}

std::vector<PfamDomain> pfam_domains(const HitLot& lot) {
  const HitList& hits = lot.totals();
  const std::size_t width = pfam_width(hits);
  std::vector<PfamDomain> rows;
  for (const Hit& hit : lot.hits) {
    if (!hit.flags.reported) continue;
    for_each_reported_domain(hit, [&](const Domain& domain, int number, bool) {
      PfamDomain& row = rows.emplace_back();
      row.key = hits.sorted_by_score ? static_cast<double>(domain.bits) : -domain.log_p;
      row.iali = domain.iali;
      row.forward = domain.iali < domain.jali;
      row.name = hit.name;
      text::append_line(row.line, text::left(hit.name, width), "", text::score(domain.bits),
                        text::e_value(independent_e_value(domain, hits)), text::integer(number, 5),
                        text::bias(bias_bits(domain)), text::integer(domain.ienv, 6),
                        text::integer(domain.jenv, 6), text::integer(domain.iali, 6),
                        text::integer(domain.jali, 6), text::integer(domain.hmm_from, 6),
                        text::integer(domain.hmm_to, 6), "   ", text::or_dash(hit.description));
    });
  }
  return rows;
}

void append_table_trailer(std::string& out, const RunDescription& run) {
  const bool as_hmmer = !run.hmmer_program.empty();
  out += "#\n# Program:         " + (as_hmmer ? run.hmmer_program : run.program);
  // Exactly HMMER's ten lines: scripts cut them off (head -n -10).
  out += "\n# Version:         ";
  if (as_hmmer) (out += kHmmerVersion) += "; computed by hmmjit ";
  out += run.version;
  out += run.scan ? "\n# Pipeline mode:   SCAN" : "\n# Pipeline mode:   SEARCH";
  out += "\n# Query file:      " + (run.scan ? run.target_file : run.query_file);
  out += "\n# Target file:     " + (run.scan ? run.query_file : run.target_file);
  out += "\n# Option settings: " + run.option_settings;
  out += "\n# Current dir:     " + run.folder;
  out += "\n# Date:            " + run.date;
  out += "\n# [ok]\n";
}

}  // namespace hmmjit
