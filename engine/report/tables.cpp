#include "report/tables.hpp"

#include <algorithm>

#include "report/kept_rows.hpp"
#include "report/numbers.hpp"
#include "report/report_header.hpp"
#include "report/text.hpp"

namespace hmmjit {
namespace {

using domain::Domain;

constexpr std::string_view kDashes = "--------------------------------";
constexpr std::string_view dashes(std::size_t count) { return kDashes.substr(0, count); }

void append_count(std::string& out, int value, std::size_t width) {
  out += ' ';
  text::integer(out, value, width);
}

// The first four columns of a line, aligned by text::left or text::right. The '#' of a comment line
// takes one character of the first column.
template <typename Align>
void append_aligned(std::string& out, Align align, const NameColumns& names, const NameWidths& w,
                    std::string_view between, bool comment) {
  if (comment) out += '#';
  align(out, names.target, comment ? w.target - 1 : w.target);
  out += ' ';
  align(out, names.target_accession, w.target_accession);
  out += between;
  align(out, names.query, w.query);
  out += ' ';
  align(out, names.query_accession, w.query_accession);
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
  out += '#';
  text::blanks(out, w.target + w.query + w.target_accession + w.query_accession + 2);
  out += " --- full sequence ---- --- best 1 domain ---- --- domain number estimation ----\n";
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
    out += ' ';
    text::scores(out, target_e_value(hit, hits), hit.score.bits, target_bias(hit));
    out += ' ';
    text::scores(out, independent_e_value(best, hits), best.bits, bias_bits(best));
    out += ' ';
    text::fixed(out, hit.score.expected_domains, 5, 1);
    append_count(out, hit.score.regions, 3);
    append_count(out, hit.score.clustered, 3);
    append_count(out, hit.score.overlaps, 3);
    append_count(out, hit.score.envelopes, 3);
    append_count(out, static_cast<int>(hit.score.domains.size()), 3);
    append_count(out, hit.reported_domains, 3);
    append_count(out, hit.included_domains, 3);
    (out += ' ') += text::or_dash(hit.description);
    out += '\n';
  }
}

void append_domain_table_header(std::string& out, const ModelInfo& model, const HitList& hits) {
  const NameWidths w = widths_of(model, hits);
  out += '#';
  text::blanks(out, w.target + w.query - 1 + 15 + w.target_accession + w.query_accession);
  out +=
      "  --- full sequence --- -------------- this domain -------------   hmm coord   ali coord   "
      "env coord\n";
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
    append_count(length, hit.length, 5);
    length += ' ';
    int number = 0;
    for (std::size_t d = 0; d < hit.score.domains.size(); ++d) {
      if (!hit.domain_flags[d].reported) continue;
      const Domain& domain = hit.score.domains[d];
      if (marked) append_kept_mark(out, 1);
      append_names(out, names_of(hit, model), w, length);
      append_count(out, model.M, 5);
      out += ' ';
      text::scores(out, target_e_value(hit, hits), hit.score.bits, target_bias(hit));
      append_count(out, ++number, 3);
      append_count(out, hit.reported_domains, 3);
      out += ' ';
      text::e_value(out, conditional_e_value(domain, hits));
      out += ' ';
      text::scores(out, independent_e_value(domain, hits), domain.bits, bias_bits(domain));
      append_count(out, domain.hmm_from, 5);
      append_count(out, domain.hmm_to, 5);
      append_count(out, domain.iali, 5);
      append_count(out, domain.jali, 5);
      append_count(out, domain.ienv, 5);
      append_count(out, domain.jenv, 5);
      out += ' ';
      text::fixed(out, mean_accuracy(domain), 4, 2);
      (out += ' ') += text::or_dash(hit.description);
      out += '\n';
    }
  }
}

namespace {

std::size_t pfam_width(const HitList& hits) { return std::max<std::size_t>(20, hits.longest_name); }

}  // namespace

void append_pfam_target_titles(std::string& out, const HitList& hits) {
  const std::size_t width = pfam_width(hits);
  out += "# Sequence scores\n# ---------------\n#\n# ";
  text::left(out, "name", width - 1);
  out += "   bits   E-value   n   exp  bias    description\n# ";
  text::right(out, dashes(19), width - 1);
  out += " ------ --------- --- ----- -----    ---------------------\n";
}

void append_pfam_targets(std::string& out, const HitLot& lot, bool marked) {
  const HitList& hits = lot.totals();
  const std::size_t width = pfam_width(hits);
  for (const Hit& hit : lot.hits) {
    if (!hit.flags.reported) continue;
    if (marked) append_kept_mark(out, hit.reported_domains);
    text::left(out, hit.name, width);
    out += "  ";
    text::score(out, hit.score.bits);
    out += ' ';
    text::e_value(out, target_e_value(hit, hits));
    append_count(out, static_cast<int>(hit.score.domains.size()), 3);
    out += ' ';
    text::fixed(out, hit.score.expected_domains, 5, 1);
    out += ' ';
    text::bias(out, target_bias(hit));
    (out += "    ") += text::or_dash(hit.description);
    out += '\n';
  }
}

void append_pfam_domain_titles(std::string& out, const HitList& hits) {
  const std::size_t width = pfam_width(hits);
  out += "\n# Domain scores\n# -------------\n#\n# ";
  text::left(out, " name", width - 1);
  out +=
      "   bits   E-value   hit  bias env-st env-en ali-st ali-en hmm-st hmm-en     description\n# ";
  text::right(out, dashes(19), width - 1);
  out +=
      " ------ --------- ----- ----- ------ ------ ------ ------ ------ ------      "
      "---------------------\n";
}

bool stands_before(const PfamDomain& a, const PfamDomain& b) {
  if (a.key != b.key) return a.key > b.key;
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
    int number = 0;
    for (std::size_t d = 0; d < hit.score.domains.size(); ++d) {
      if (!hit.domain_flags[d].reported) continue;
      const Domain& domain = hit.score.domains[d];
      PfamDomain& row = rows.emplace_back();
      row.key = hits.sorted_by_score ? static_cast<double>(domain.bits) : -domain.log_p;
      row.iali = domain.iali;
      row.forward = domain.iali < domain.jali;
      row.name = hit.name;
      std::string& out = row.line;
      text::left(out, hit.name, width);
      out += "  ";
      text::score(out, domain.bits);
      out += ' ';
      text::e_value(out, independent_e_value(domain, hits));
      append_count(out, ++number, 5);
      out += ' ';
      text::bias(out, bias_bits(domain));
      for (const int place : {domain.ienv, domain.jenv, domain.iali, domain.jali, domain.hmm_from,
                              domain.hmm_to})
        append_count(out, place, 6);
      (out += "     ") += text::or_dash(hit.description);
      out += '\n';
    }
  }
  return rows;
}

void append_table_trailer(std::string& out, const RunDescription& run) {
  const bool as_hmmer = !run.hmmer_program.empty();
  out += "#\n# Program:         " + (as_hmmer ? run.hmmer_program : run.program);
  out += "\n# Version:         " + (as_hmmer ? std::string(kHmmerVersion) : run.version);
  if (as_hmmer) out += "\n# Computed by:     hmmjit " + run.version;
  out += run.scan ? "\n# Pipeline mode:   SCAN" : "\n# Pipeline mode:   SEARCH";
  out += "\n# Query file:      " + (run.scan ? run.target_file : run.query_file);
  out += "\n# Target file:     " + (run.scan ? run.query_file : run.target_file);
  out += "\n# Option settings: " + run.option_settings;
  out += "\n# Current dir:     " + run.folder;
  out += "\n# Date:            " + run.date;
  out += "\n# [ok]\n";
}

}  // namespace hmmjit
