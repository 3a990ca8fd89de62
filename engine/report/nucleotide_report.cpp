#include "report/nucleotide_report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <initializer_list>
#include <string_view>

#include "model/score_statistics.hpp"
#include "report/kept_rows.hpp"
#include "report/numbers.hpp"
#include "report/text.hpp"

namespace hmmjit {
namespace {

using LocalHit = nucleotide::Hit;

double e_value_of(const LocalHit& hit) { return flushed_exp(hit.domain.log_p); }

std::string_view shown_name(const LocalHit& hit, const ReportOptions& report) {
  const nucleotide::Subject& subject = *hit.subject;
  return report.prefer_accession && !subject.accession.empty() ? subject.accession : subject.name;
}

void append_number(std::string& out, std::int64_t value, std::size_t width) {
  out += ' ';
  text::integer(out, value, width);
}

void append_title(std::string& out, std::string_view title, std::size_t width) {
  out += ' ';
  text::right(out, title, width);
}

std::size_t position_width(const NucleotideResult& result, std::size_t least) {
  return std::max(least, std::to_string(result.hits.extents.position).size());
}

void append_scores(std::string& out, const NucleotideResult& result, const ReportOptions& report) {
  const nucleotide::Extents& extents = result.hits.extents;
  const std::size_t width =
      std::max<std::size_t>(8, report.prefer_accession ? extents.shown : extents.name);
  const std::size_t places = position_width(result, 6);
  const auto titles = [&](std::string_view scores, std::string_view name, std::string_view start,
                          std::string_view end, std::string_view description) {
    out += scores;
    text::left(out, name, width);
    append_title(out, start, places);
    append_title(out, end, places);
    (out += "  ") += description;
    out += '\n';
  };
  out += result.is_scan() ? "Scores for complete hit:\n" : "Scores for complete hits:\n";
  titles("    E-value  score  bias  ", result.is_scan() ? "Model" : "Sequence", "start", "end",
         "Description");
  titles("    ------- ------ -----  ", "--------", "-----", "-----", "-----------");
  bool above = true;
  for (const LocalHit& hit : result.hits.hits) {
    if (above && !hit.included) {
      out += "  ------ inclusion threshold ------\n";
      above = false;
    }
    out += "  ";
    text::scores(out, e_value_of(hit), hit.domain.bits, bias_bits(hit.domain));
    out += "  ";
    text::left(out, shown_name(hit, report), width);
    append_number(out, hit.domain.iali, places);
    append_number(out, hit.domain.jali, places);
    out += ' ';
    out += cut_description(hit.subject->description, report.text_width, width + 2 * places + 32);
    out += '\n';
  }
  if (result.hits.hits.empty())
    out += "\n   [No hits detected that satisfy reporting thresholds]\n";
}

void append_annotation_row(std::string& out, const LocalHit& hit, int M) {
  const domain::Domain& d = hit.domain;
  const auto range = [&out](int from, int to, std::int64_t last) {
    append_number(out, from, 9);
    append_number(out, to, 9);
    out += ' ';
    out += from == 1 ? '[' : '.';
    out += to == last ? ']' : '.';
  };
  out += hit.included ? " ! " : " ? ";
  text::score(out, d.bits);
  out += ' ';
  text::bias(out, bias_bits(d));
  out += ' ';
  text::e_value(out, e_value_of(hit));
  range(d.hmm_from, d.hmm_to, M);
  range(d.iali, d.jali, hit.subject->length);
  range(d.ienv, d.jenv, hit.subject->length);
  append_number(out, hit.subject->length, 9);
  out += "    ";
  text::fixed(out, mean_accuracy(d), 4, 2);
  out += '\n';
}

void append_annotation(std::string& out, const NucleotideResult& result,
                       const ReportOptions& report) {
  const std::string_view length = result.is_scan() ? " mod len " : "  sq len ";
  const auto& accession = result.query.accession;
  const std::string& query = report.prefer_accession && accession && !accession->empty()
                                 ? *accession
                                 : result.query.name;
  out += report.alignments ? "Annotation for each hit  (and alignments):\n"
                           : "Annotation for each hit :\n";
  for (const LocalHit& hit : result.hits.hits) {
    const std::string name(shown_name(hit, report));
    out += ">> " + name + "  ";
    out += cut_description(hit.subject->description, report.text_width, name.size() + 5);
    out += "\n    score  bias    Evalue   hmmfrom    hmm to     alifrom    ali to      envfrom  "
           "  env to     ";
    text::right(out, length, 9);
    out += "     acc\n"
           "   ------ ----- ---------   -------   -------    --------- ---------    --------- "
           "---------    ---------    ----\n";
    append_annotation_row(out, hit,
                          result.is_scan() ? static_cast<int>(hit.subject->length) : result.query.M);
    if (report.alignments) {
      out += "\n  Alignment:\n  score: ";
      text::fixed(out, hit.domain.bits, 0, 1);
      out += " bits\n";
      append_alignment(out, result.is_scan() ? name : query, result.is_scan() ? query : name,
                       hit.domain, report.text_width);
    }
    out += '\n';
  }
  if (result.hits.hits.empty())
    out += "\n   [No targets detected that satisfy reporting thresholds]\n";
}

void append_counts(std::string& out, const NucleotideResult& result,
                   const nucleotide::Options& options) {
  const nucleotide::Counters& counters = result.hits.counters;
  const double searched =
      static_cast<double>(counters.residues) * static_cast<double>(result.models);
  const auto count = [&out](std::string_view label, std::uint64_t value) {
    text::left(out, label, 29);
    text::integer(out, static_cast<std::int64_t>(value), 15);
    out += "  (";
  };
  const auto share = [&](std::uint64_t value) {
    if (searched == 0) {
      out += "-nan";
    } else {
      text::general(out, static_cast<double>(value) / searched, 0, 3);
    }
  };
  const auto passed = [&](std::string_view label, std::uint64_t value, double limit) {
    count(label, value);
    share(value);
    out += "); expected (";
    text::general(out, limit, 0, 3);
    out += ")\n";
  };
  const std::string residues = std::to_string(counters.residues) + " residues searched)\n";
  out += "Internal pipeline statistics summary:\n"
         "-------------------------------------\n";
  if (result.is_scan()) {
    count("Query sequence(s):", 1);
    out += residues;
    count("Target model(s):", result.models);
    out += std::to_string(result.nodes) + " nodes)\n";
  } else {
    count("Query model(s):", 1);
    out += std::to_string(result.query.M) + " nodes)\n";
    count("Target sequences:", counters.targets);
    out += residues;
  }
  passed("Residues passing SSV filter:", counters.msv, options.F1);
  passed("Residues passing bias filter:", counters.bias, options.F1);
  passed("Residues passing Vit filter:", counters.viterbi, options.F2);
  passed("Residues passing Fwd filter:", counters.forward, options.F3);
  count("Total number of hits:", result.hits.reported);
  share(result.hits.reported_residues);
  out += ")\n";
  append_times(out, 0, 0, 0);  // queries are searched together
}

NameWidths widths_of(const NucleotideResult& result) {
  return name_widths(result.query, result.hits.extents.name, result.hits.extents.accession);
}

// Appends the four columns of coordinates and the column of lengths.
void append_positions(std::string& out, const LocalHit& hit, std::size_t width) {
  for (const std::int64_t position : {static_cast<std::int64_t>(hit.domain.iali),
                                      static_cast<std::int64_t>(hit.domain.jali),
                                      static_cast<std::int64_t>(hit.domain.ienv),
                                      static_cast<std::int64_t>(hit.domain.jenv),
                                      hit.subject->length})
    append_number(out, position, width);
}

// Appends the titles of these columns, or the dashes below them.
void append_position_titles(std::string& out, std::initializer_list<std::string_view> titles,
                            std::size_t width) {
  for (const std::string_view title : titles) append_title(out, title, width);
}
constexpr std::string_view kRule = "-------";

constexpr std::string_view strand(const LocalHit& hit) { return hit.bottom ? "   -  " : "   +  "; }

}  // namespace

void append_nucleotide_report(std::string& out, const NucleotideResult& result,
                              const ReportOptions& report, const nucleotide::Options& options) {
  append_query(out, result.query);
  append_scores(out, result, report);
  out += "\n\n";
  append_annotation(out, result, report);
  out += "\n\n";
  append_counts(out, result, options);
  out += "//\n";
}

void append_nucleotide_table_header(std::string& out, const NucleotideResult& result) {
  const NameWidths w = widths_of(result);
  const std::size_t places = position_width(result, 7);
  append_name_titles(out, w);
  out += " hmmfrom hmm to";
  append_position_titles(
      out, {"alifrom", "ali to", "envfrom", "env to", result.is_scan() ? "modlen" : "sq len"},
      places);
  out += " strand   E-value  score  bias  description of target\n";
  append_name_rules(out, w);
  out += " ------- -------";
  append_position_titles(out, {kRule, kRule, kRule, kRule, kRule}, places);
  out += " ------ --------- ------ ----- ---------------------\n";
}

void append_nucleotide_table(std::string& out, const NucleotideResult& result, bool marked) {
  const NameWidths w = widths_of(result);
  for (const LocalHit& hit : result.hits.hits) {
    if (marked) append_kept_mark(out, 1);
    append_names(out, name_columns(result.query, hit.subject->name, hit.subject->accession), w);
    append_number(out, hit.domain.hmm_from, 7);
    append_number(out, hit.domain.hmm_to, 7);
    append_positions(out, hit, position_width(result, 7));
    (out += ' ') += strand(hit);
    out += ' ';
    text::scores(out, e_value_of(hit), hit.domain.bits, bias_bits(hit.domain));
    (out += "  ") += text::or_dash(hit.subject->description);
    out += '\n';
  }
}

void append_dfam_table(std::string& out, const NucleotideResult& result, bool marked) {
  const NameWidths w = widths_of(result);
  const std::size_t places = position_width(result, 7);
  const std::size_t accession = std::max<std::size_t>(20, w.target_accession);
  const auto names = [&](std::string_view target, std::size_t width, std::string_view acc,
                         std::string_view query) {
    text::left(out, target, width);
    out += ' ';
    text::left(out, acc, accession);
    out += ' ';
    text::left(out, query, w.query);
  };
  out += "# hit scores\n# ----------\n#\n# ";
  names("target name", w.target - 1, "acc", "query name");
  out += "   bits   e-value  bias  hmm-st  hmm-en strand";
  append_position_titles(
      out, {"ali-st", "ali-en", "env-st", "env-en", result.is_scan() ? "modlen" : "sq-len"},
      places);
  out += "   description of target\n# ";
  constexpr std::string_view kName = "-------------------";
  names(kName, w.target - 1, kName, kName);
  out += " ------ --------- ----- ------- ------- ------";
  append_position_titles(out, {kRule, kRule, kRule, kRule, kRule}, places);
  out += "   ---------------------\n";
  for (const LocalHit& hit : result.hits.hits) {
    if (marked) append_kept_mark(out, 1);
    const std::string& of_model =
        result.is_scan() ? hit.subject->accession : result.query.accession.value_or("");
    names(hit.subject->name, w.target + 1, text::or_dash(of_model), result.query.name);
    out += ' ';
    text::score(out, hit.domain.bits);
    out += ' ';
    text::e_value(out, e_value_of(hit));
    out += ' ';
    text::bias(out, bias_bits(hit.domain));
    append_number(out, hit.domain.hmm_from, 7);
    append_number(out, hit.domain.hmm_to, 7);
    (out += ' ') += strand(hit);
    append_positions(out, hit, places);
    (out += "   ") += text::or_dash(hit.subject->description);
    out += '\n';
  }
}

void append_column_scores(std::string& out, const NucleotideResult& result) {
  for (const LocalHit& hit : result.hits.hits) {
    out += result.query.name + " " + hit.subject->name + " " + std::to_string(hit.domain.iali) +
           " " + std::to_string(hit.domain.jali) + " :";
    for (const float nats : hit.column_scores) {
      if (std::isnan(nats)) {
        out += " >";
      } else {
        out += ' ';
        text::fixed(out, static_cast<double>(nats) * 1.44269504088896341, 0, 3);
      }
    }
    out += '\n';
  }
}

HitList single_domain_hits(const nucleotide::HitList& hits) {
  HitList list;
  list.Z = list.domZ = 1;  // E-values are those of the search space
  list.candidates = list.reported = hits.reported;
  list.included = hits.included;
  list.longest_name = hits.extents.name;
  list.longest_accession = hits.extents.accession;
  list.longest_shown = hits.extents.shown;
  const nucleotide::Counters& c = hits.counters;
  list.counters = {c.targets, c.residues, c.msv, c.bias, c.viterbi, c.forward};
  for (const LocalHit& hit : hits.hits) {
    Hit& target = list.hits.emplace_back();
    target.name = hit.subject->name;
    target.accession = hit.subject->accession;
    target.description = hit.subject->description;
    target.index = hit.subject->index;
    target.length = static_cast<int>(hit.subject->length);
    target.score.bits = hit.domain.bits;
    target.score.pre_bits = hit.domain.bits + static_cast<float>(bias_bits(hit.domain));
    target.score.log_p = hit.domain.log_p;
    target.score.expected_domains = 1;
    target.score.regions = target.score.envelopes = 1;
    target.score.domains = {hit.domain};
    target.flags = {hit.reported, hit.included};
    target.domain_flags = {target.flags};
    target.reported_domains = hit.reported;
    target.included_domains = hit.included;
  }
  return list;
}

NucleotideResult nucleotide_result(const ModelResult& single, std::int64_t longest_position) {
  const HitList& list = single.hits;
  const FilterCounters& c = list.counters;
  NucleotideResult out{.query = single.model, .hits = {}};
  out.hits.reported = list.reported;
  out.hits.included = list.included;
  out.hits.extents = {list.longest_name, list.longest_accession, list.longest_shown,
                      longest_position};
  out.hits.counters = {c.targets, c.residues, c.msv, c.bias, c.viterbi, c.forward};
  for (const Hit& target : list.hits) {
    LocalHit& hit = out.hits.hits.emplace_back();
    hit.subject = std::make_shared<const nucleotide::Subject>(nucleotide::Subject{
        target.index, target.name, target.accession, target.description, target.length});
    hit.domain = target.score.domains.front();
    hit.bottom = hit.domain.iali > hit.domain.jali;
    hit.reported = target.flags.reported;
    hit.included = target.flags.included;
    out.hits.reported_residues +=
        static_cast<std::uint64_t>(std::abs(hit.domain.jali - hit.domain.iali) + 1);
  }
  return out;
}

}  // namespace hmmjit
