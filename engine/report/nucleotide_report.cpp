#include "report/nucleotide_report.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <utility>

#include "model/score_statistics.hpp"
#include "report/kept_rows.hpp"
#include "report/numbers.hpp"
#include "report/text.hpp"

namespace hmmjit {
namespace {

const domain::Domain& domain_of(const Hit& hit) { return hit.score.domains.front(); }

double e_value_of(const Hit& hit) { return e_value(domain_of(hit).log_p); }

bool is_scan(const ModelResult& result) { return result.model.built.has_value(); }

std::size_t position_width(const ModelResult& result, std::size_t least) {
  return std::max(least, std::to_string(result.nucleotides->longest_position).size());
}

void append_scores(std::string& out, const ModelResult& result, const ReportOptions& report) {
  const std::size_t width = std::max<std::size_t>(
      8, report.prefer_accession ? result.hits.longest_shown : result.hits.longest_name);
  const std::size_t places = position_width(result, 6);
  const auto titles = [&](std::string_view scores, std::string_view name, std::string_view start,
                          std::string_view end, std::string_view description) {
    text::append_line(out, scores, text::left(name, width), text::right(start, places),
                      text::right(end, places), "", description);
  };
  out += is_scan(result) ? "Scores for complete hit:\n" : "Scores for complete hits:\n";
  titles("    E-value  score  bias ", is_scan(result) ? "Model" : "Sequence", "start", "end",
         "Description");
  titles("    ------- ------ ----- ", "--------", "-----", "-----", "-----------");
  bool above = true;
  for (const Hit& hit : result.hits.hits) {
    if (above && !hit.flags.included) {
      out += "  ------ inclusion threshold ------\n";
      above = false;
    }
    const domain::Domain& domain = domain_of(hit);
    text::append_line(out, ' ', text::scores(e_value_of(hit), domain.bits, bias_bits(domain)), "",
                      text::left(hit.shown_name(report.prefer_accession), width),
                      text::integer(domain.iali, places), text::integer(domain.jali, places),
                      cut_description(hit.description, report.text_width, width + 2 * places + 32));
  }
  if (result.hits.hits.empty())
    out += "\n   [No hits detected that satisfy reporting thresholds]\n";
}

void append_annotation_row(std::string& out, const Hit& hit, int M) {
  const domain::Domain& d = domain_of(hit);
  const auto range = [](int from, int to, std::int64_t last) {
    return text::range(from, to, last, 9);
  };
  text::append_line(out, "", hit.flags.included ? '!' : '?', text::score(d.bits),
                    text::bias(bias_bits(d)), text::e_value(e_value_of(hit)),
                    range(d.hmm_from, d.hmm_to, M), range(d.iali, d.jali, hit.length),
                    range(d.ienv, d.jenv, hit.length), text::integer(hit.length, 9), "  ",
                    text::fixed(mean_accuracy(d), 4, 2));
}

void append_annotation(std::string& out, const ModelResult& result, const ReportOptions& report) {
  const std::string_view length = is_scan(result) ? " mod len " : "  sq len ";
  const auto& accession = result.model.accession;
  const std::string& query =
      report.prefer_accession && accession && !accession->empty() ? *accession : result.model.name;
  out += report.alignments ? "Annotation for each hit  (and alignments):\n"
                           : "Annotation for each hit :\n";
  for (const Hit& hit : result.hits.hits) {
    const std::string& name = hit.shown_name(report.prefer_accession);
    text::append(
        out, ">> ", name, "  ",
        cut_description(hit.description, report.text_width, name.size() + 5),
        "\n    score  bias    Evalue   hmmfrom    hmm to     alifrom    ali to      envfrom  "
        "  env to     ",
        length,
        "     acc\n"
        "   ------ ----- ---------   -------   -------    --------- ---------    --------- "
        "---------    ---------    ----\n");
    append_annotation_row(out, hit, is_scan(result) ? hit.length : result.model.M);
    if (report.alignments) {
      text::append(out, "\n  Alignment:\n  score: ", text::fixed(domain_of(hit).bits, 0, 1),
                   " bits\n");
      append_alignment(out, is_scan(result) ? name : query, is_scan(result) ? query : name,
                       domain_of(hit), report.text_width);
    }
    out += '\n';
  }
  if (result.hits.hits.empty())
    out += "\n   [No targets detected that satisfy reporting thresholds]\n";
}

void append_counts(std::string& out, const ModelResult& result) {
  const NucleotideFields& fields = *result.nucleotides;
  const FilterCounters& counters = result.hits.counters;
  const double searched =
      static_cast<double>(counters.residues) * static_cast<double>(fields.models);
  const auto share = [=](std::uint64_t value) {
    return [=](std::string& line) {
      if (searched == 0) {
        line += "-nan";
      } else {
        text::append(line, text::general(static_cast<double>(value) / searched, 0, 3));
      }
    };
  };
  const auto passed = [&](std::string_view label, std::uint64_t value, double limit) {
    text::append(out, text::count(label, value), share(value), "); expected (",
                 text::general(limit, 0, 3), ")\n");
  };
  const std::string residues = std::to_string(counters.residues) + " residues searched)\n";
  out += "Internal pipeline statistics summary:\n"
         "-------------------------------------\n";
  if (is_scan(result)) {
    text::append(out, text::count("Query sequence(s):", 1), residues,
                 text::count("Target model(s):", fields.models), std::to_string(fields.nodes),
                 " nodes)\n");
  } else {
    text::append(out, text::count("Query model(s):", 1), std::to_string(result.model.M),
                 " nodes)\n", text::count("Target sequences:", counters.targets), residues);
  }
  passed("Residues passing SSV filter:", counters.msv, fields.F1);
  passed("Residues passing bias filter:", counters.bias, fields.F1);
  passed("Residues passing Vit filter:", counters.viterbi, fields.F2);
  passed("Residues passing Fwd filter:", counters.forward, fields.F3);
  std::uint64_t aligned = 0;
  for (const Hit& hit : result.hits.hits)
    aligned += static_cast<std::uint64_t>(std::abs(domain_of(hit).jali - domain_of(hit).iali) + 1);
  text::append(out, text::count("Total number of hits:", result.hits.reported), share(aligned),
               ")\n");
  append_times(out, 0, 0, 0);  // zero: queries share the search
}

NameWidths widths_of(const ModelResult& result) {
  return name_widths(result.model, result.hits.longest_name, result.hits.longest_accession);
}

// The four columns of coordinates and the column of lengths.
auto positions(const Hit& hit, std::size_t width) {
  return [&hit, width](std::string& out) {
    const domain::Domain& d = domain_of(hit);
    text::append(out, text::integer(d.iali, width), ' ', text::integer(d.jali, width), ' ',
                 text::integer(d.ienv, width), ' ', text::integer(d.jenv, width), ' ',
                 text::integer(hit.length, width));
  };
}

// The titles of the columns of positions(), or the dashes below them.
auto position_titles(const std::array<std::string_view, 5>& titles, std::size_t width) {
  return [titles, width](std::string& out) {
    for (const std::string_view title : titles) text::append(out, ' ', text::right(title, width));
  };
}
constexpr std::string_view kRule = "-------";
constexpr std::array kRules{kRule, kRule, kRule, kRule, kRule};

std::string_view strand(const Hit& hit) {
  return domain_of(hit).iali > domain_of(hit).jali ? "   -  " : "   +  ";
}

}  // namespace

void append_nucleotide_report(std::string& out, const ModelResult& result,
                              const ReportOptions& report) {
  append_query(out, result.model);
  append_scores(out, result, report);
  out += "\n\n";
  append_annotation(out, result, report);
  out += "\n\n";
  append_counts(out, result);
  out += "//\n";
}

void append_nucleotide_table_header(std::string& out, const ModelResult& result) {
  const NameWidths w = widths_of(result);
  const std::size_t places = position_width(result, 7);
  append_name_titles(out, w);
  text::append(out, " hmmfrom hmm to",
               position_titles({"alifrom", "ali to", "envfrom", "env to",
                                is_scan(result) ? "modlen" : "sq len"},
                               places),
               " strand   E-value  score  bias  description of target\n");
  append_name_rules(out, w);
  text::append(out, " ------- -------", position_titles(kRules, places),
               " ------ --------- ------ ----- ---------------------\n");
}

void append_nucleotide_table(std::string& out, const HitLot& all, bool marked) {
  const ModelResult& result = all.result;
  const NameWidths w = widths_of(result);
  for (const Hit& hit : result.hits.hits) {
    if (marked) append_kept_mark(out, 1);
    const domain::Domain& d = domain_of(hit);
    append_names(out, name_columns(result.model, hit.name, hit.accession), w);
    text::append_line(out, "", text::integer(d.hmm_from, 7), text::integer(d.hmm_to, 7),
                      positions(hit, position_width(result, 7)), strand(hit),
                      text::scores(e_value_of(hit), d.bits, bias_bits(d)), "",
                      text::or_dash(hit.description));
  }
}

void append_dfam_table(std::string& out, const HitLot& all, bool marked) {
  const ModelResult& result = all.result;
  const NameWidths w = widths_of(result);
  const std::size_t places = position_width(result, 7);
  const std::size_t accession = std::max<std::size_t>(20, w.target_accession);
  const auto names = [&](std::string_view target, std::size_t width, std::string_view acc,
                         std::string_view query) {
    return [=, query_width = w.query](std::string& line) {
      text::append(line, text::left(target, width), ' ', text::left(acc, accession), ' ',
                   text::left(query, query_width));
    };
  };
  constexpr std::string_view kName = "-------------------";
  text::append(
      out, "# hit scores\n# ----------\n#\n# ",
      names("target name", w.target - 1, "acc", "query name"),
      "   bits   e-value  bias  hmm-st  hmm-en strand",
      position_titles(
          {"ali-st", "ali-en", "env-st", "env-en", is_scan(result) ? "modlen" : "sq-len"}, places),
      "   description of target\n# ", names(kName, w.target - 1, kName, kName),
      " ------ --------- ----- ------- ------- ------", position_titles(kRules, places),
      "   ---------------------\n");
  for (const Hit& hit : result.hits.hits) {
    if (marked) append_kept_mark(out, 1);
    const domain::Domain& d = domain_of(hit);
    const std::string& of_model =
        is_scan(result) ? hit.accession : result.model.accession.value_or("");
    text::append_line(out,
                      names(hit.name, w.target + 1, text::or_dash(of_model), result.model.name),
                      text::score(d.bits), text::e_value(e_value_of(hit)), text::bias(bias_bits(d)),
                      text::integer(d.hmm_from, 7), text::integer(d.hmm_to, 7), strand(hit),
                      positions(hit, places), ' ', text::or_dash(hit.description));
  }
}

void append_column_scores(std::string& out, const HitLot& all) {
  const ModelResult& result = all.result;
  for (std::size_t h = 0; h < result.hits.hits.size(); ++h) {
    const Hit& hit = result.hits.hits[h];
    text::append(out, result.model.name, ' ', hit.name, ' ', text::integer(domain_of(hit).iali, 0),
                 ' ', text::integer(domain_of(hit).jali, 0), " :");
    for (const float nats : result.nucleotides->column_scores[h]) {
      if (nats == -std::numeric_limits<float>::infinity()) {
        out += " >";
      } else {
        text::append(out, ' ', text::fixed(static_cast<double>(nats) * 1.44269504088896341, 0, 3));
      }
    }
    out += '\n';
  }
}

ModelResult nucleotide_result(nucleotide::HitList hits, const nucleotide::Options& options) {
  ModelResult result;
  NucleotideFields& fields = result.nucleotides.emplace();
  fields.F1 = options.F1;
  fields.F2 = options.F2;
  fields.F3 = options.F3;
  fields.longest_position = hits.extents.position;
  HitList& list = result.hits;
  list.Z = list.domZ = 1;  // E-values already refer to the search space
  list.candidates = list.reported = hits.reported;
  list.included = hits.included;
  list.longest_name = hits.extents.name;
  list.longest_accession = hits.extents.accession;
  list.longest_shown = hits.extents.shown;
  list.counters = hits.counters;
  for (nucleotide::Hit& hit : hits.hits) {
    Hit& target = list.hits.emplace_back();
    target.name = hit.subject->name;
    target.accession = hit.subject->accession;
    target.description = hit.subject->description;
    target.index = hit.subject->index;
    target.length = static_cast<int>(hit.subject->length);
    target.score.bits = hit.domain.bits;
    target.score.log_p = hit.domain.log_p;
    target.score.expected_domains = 1;
    target.score.regions = target.score.envelopes = 1;
    target.score.domains = {std::move(hit.domain)};
    target.flags = {hit.reported, hit.included};
    target.domain_flags = {target.flags};
    target.reported_domains = hit.reported;
    target.included_domains = hit.included;
    fields.column_scores.push_back(std::move(hit.column_scores));
  }
  return result;
}

}  // namespace hmmjit
