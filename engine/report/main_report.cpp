#include "report/main_report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "report/numbers.hpp"
#include "report/text.hpp"

namespace hmmjit {
namespace {

using domain::Alignment;
using domain::Domain;

std::size_t digits(int value) { return std::to_string(value).size(); }

// Appends an annotation line (structure, reference, posterior), which has a tag but no coordinates.
void append_annotation(std::string& out, std::size_t margin, std::string_view columns,
                       std::string_view tag) {
  text::append(out, text::blanks(margin), columns, ' ', tag, '\n');
}

void append_domain_row(std::string& out, int number, bool included, const Domain& domain,
                       const HitList& hits, int M, int L) {
  const auto range = [](int from, int to, std::int64_t last) {
    return text::range(from, to, last, 7);
  };
  text::append_line(out, "", text::integer(number, 3), included ? '!' : '?',
                    text::score(domain.bits), text::bias(bias_bits(domain)),
                    text::e_value(conditional_e_value(domain, hits)),
                    text::e_value(independent_e_value(domain, hits)),
                    range(domain.hmm_from, domain.hmm_to, M), range(domain.iali, domain.jali, L),
                    range(domain.ienv, domain.jenv, L), text::fixed(mean_accuracy(domain), 4, 2));
}

std::string clock_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds);
  const auto hundredths = static_cast<std::int64_t>((seconds - static_cast<double>(whole)) * 100);
  return fmt::format("{:02}:{:02}:{:02}.{:02}", whole / 3600, whole / 60 % 60, whole % 60,
                     hundredths);
}

}  // namespace

std::string_view cut_description(std::string_view description, int text_width, std::size_t used) {
  if (text_width == 0) return description;
  const int room = std::max(32, text_width - static_cast<int>(used));
  return description.substr(0, static_cast<std::size_t>(room));
}

void append_alignment(std::string& out, const std::string& model_name,
                      const std::string& target_name, const Domain& domain, int text_width) {
  const Alignment& alignment = domain.alignment;
  const std::size_t name_width = std::max(model_name.size(), target_name.size());
  const std::size_t coordinate_width = std::max(
      {digits(domain.hmm_from), digits(domain.hmm_to), digits(domain.iali), digits(domain.jali)});
  const std::size_t columns = alignment.model.size();
  std::size_t width = columns;
  if (text_width > 0) {
    const int room =
        text_width - static_cast<int>(name_width) - 2 * static_cast<int>(coordinate_width) - 5;
    if (room < static_cast<int>(columns)) width = static_cast<std::size_t>(std::max(room, 40));
  }
  const std::size_t margin = name_width + coordinate_width + 4;
  const int step = domain.iali <= domain.jali ? 1 : -1;
  int k = domain.hmm_from, i = domain.iali;
  for (std::size_t at = 0; at < columns; at += width) {
    const auto block = [&](const std::string& line) {
      return std::string_view(line).substr(at, width);
    };
    if (at > 0) out += '\n';
    const std::string_view model = block(alignment.model), sequence = block(alignment.sequence);
    const int nodes = static_cast<int>(model.size()) -
                      static_cast<int>(std::count(model.begin(), model.end(), '.'));
    const int residues = static_cast<int>(sequence.size()) -
                         static_cast<int>(std::count(sequence.begin(), sequence.end(), '-'));
    if (!alignment.cs.empty()) append_annotation(out, margin, block(alignment.cs), "CS");
    if (!alignment.rf.empty()) append_annotation(out, margin, block(alignment.rf), "RF");

    text::append_line(out, ' ', text::right(model_name, name_width),
                      text::integer(k, coordinate_width), model,
                      text::left(std::to_string(k + nodes - 1), coordinate_width));
    k += nodes;

    text::append(out, text::blanks(margin), block(alignment.match), '\n');

    text::append(out, "  ", text::right(target_name, name_width), ' ');
    if (residues > 0) {
      text::append_line(out, text::integer(i, coordinate_width), sequence,
                        text::left(std::to_string(i + step * (residues - 1)), coordinate_width));
    } else {
      text::append_line(out, text::right("-", coordinate_width), sequence,
                        text::right("-", coordinate_width));
    }
    i += step * residues;

    if (!alignment.pp.empty()) append_annotation(out, margin, block(alignment.pp), "PP");
  }
}

void append_query(std::string& out, const ModelInfo& model) {
  out += "Query:       " + model.name + (model.built ? "  [L=" : "  [M=") +
         std::to_string(model.M) + "]\n";
  if (model.accession) out += "Accession:   " + *model.accession + "\n";
  if (model.description) out += "Description: " + *model.description + "\n";
}

namespace {

std::size_t score_name_width(const HitList& hits, const ReportOptions& options) {
  return std::max<std::size_t>(8,
                               options.prefer_accession ? hits.longest_shown : hits.longest_name);
}

}  // namespace

void append_score_titles(std::string& out, const HitList& hits, const ReportOptions& options) {
  const std::size_t width = score_name_width(hits, options);
  const std::string_view title = options.records.by_sequence ? "Model" : "Sequence";
  text::append(out,
               options.records.by_sequence
                   ? "Scores for complete sequence (score includes all domains):\n"
                   : "Scores for complete sequences (score includes all domains):\n",
               "   --- full sequence ---   --- best 1 domain ---    -#dom-\n"
               "    E-value  score  bias    E-value  score  bias    exp  N  ",
               text::left(title, width),
               " Description\n"
               "    ------- ------ -----    ------- ------ -----   ---- --  ",
               text::left("--------", width), " -----------\n");
}

void append_score_rows(std::string& out, const HitLot& lot, const ReportOptions& options,
                       bool& above, std::string_view marks) {
  const HitList& hits = lot.totals();
  const std::size_t width = score_name_width(hits, options);
  for (std::size_t h = 0; h < lot.hits.size(); ++h) {
    const Hit& hit = lot.hits[h];
    if (!hit.flags.reported) continue;
    if (above && !hit.flags.included) {
      out += "  ------ inclusion threshold ------\n";
      above = false;
    }
    const Domain& best = hit.best_domain();
    text::append(
        out, marks.empty() ? ' ' : marks[h], ' ',
        text::scores(target_e_value(hit, hits), hit.score.bits, target_bias(hit, lot.result)), "  ",
        text::scores(independent_e_value(best, hits), best.bits, bias_bits(best)), "  ",
        text::fixed(hit.score.expected_domains, 5, 1), ' ', text::integer(hit.reported_domains, 2),
        "  ", text::left(hit.shown_name(options.prefer_accession), width), "  ",
        cut_description(hit.description, options.text_width, width + 61), '\n');
  }
}

void append_annotation_title(std::string& out, const HitList& hits, const ReportOptions& options) {
  if (hits.reported == 0) out += "\n   [No hits detected that satisfy reporting thresholds]\n";
  out += "\n\n";
  out += options.records.by_sequence ? "Domain annotation for each model"
                                     : "Domain annotation for each sequence";
  out += options.alignments ? " (and alignments):\n" : ":\n";
}

void append_annotation_rows(std::string& out, const HitLot& lot, const ReportOptions& options) {
  const ModelInfo& model = lot.model();
  const HitList& hits = lot.totals();
  const QueryNames own =
      model.built ? *model.built : QueryNames{model.name, model.accession, model.description};
  const bool model_accession = options.prefer_accession && own.accession && !own.accession->empty();
  const std::string& model_name = model_accession ? *own.accession : own.name;
  for (const Hit& hit : lot.hits) {
    if (!hit.flags.reported) continue;
    const std::string& name = hit.shown_name(options.prefer_accession);
    text::append(out, ">> ", name, "  ",
                 cut_description(hit.description, options.text_width, name.size() + 5), '\n');
    if (hit.reported_domains == 0) {
      out +=
          "   [No individual domains that satisfy reporting thresholds "
          "(although complete target did)]\n\n";
      continue;
    }
    out +=
        "   #    score  bias  c-Evalue  i-Evalue hmmfrom  hmm to    alifrom  ali to    envfrom  "
        "env to     acc\n"
        " ---   ------ ----- --------- --------- ------- -------    ------- -------    ------- "
        "-------    ----\n";
    for_each_reported_domain(hit, [&](const Domain& domain, int number, bool included) {
      append_domain_row(out, number, included, domain, hits,
                        options.records.by_sequence ? hit.length : model.M,
                        options.records.by_sequence ? model.M : hit.length);
    });
    if (!options.alignments) {
      out += '\n';
      continue;
    }
    out += "\n  Alignments for each domain:\n";
    for_each_reported_domain(hit, [&](const Domain& domain, int number, bool) {
      text::append(out, "  == domain ", text::integer(number, 0),
                   "  score: ", text::fixed(domain.bits, 0, 1), " bits;  conditional E-value: ",
                   text::general(conditional_e_value(domain, hits), 0, 2), '\n');
      append_alignment(out, options.records.by_sequence ? name : model_name,
                       options.records.by_sequence ? model_name : name, domain, options.text_width);
      out += '\n';
    });
  }
}

void append_statistics(std::string& out, const ModelResult& result, const FilterOptions& filters,
                       bool by_sequence) {
  const ModelInfo& model = result.model;
  const HitList& hits = result.hits;
  if (hits.reported == 0) out += "\n   [No targets detected that satisfy reporting thresholds]\n";
  out += "\n\n";
  const FilterCounters& counters = hits.counters;
  const auto targets = static_cast<double>(counters.targets);
  const auto passed = [&](std::string_view label, std::uint64_t value, double limit) {
    text::append(out, text::count(label, value),
                 text::general(static_cast<double>(value) / targets, 0, 6), "); expected ",
                 text::fixed(limit * targets, 0, 1), " (", text::general(limit, 0, 6), ")\n");
  };
  text::append(
      out,
      "Internal pipeline statistics summary:\n"
      "-------------------------------------\n",
      text::count(by_sequence ? "Query sequence(s):" : "Query model(s):", 1),
      text::integer(model.M, 0), by_sequence ? " residues searched)\n" : " nodes)\n",
      text::count(by_sequence ? "Target model(s):" : "Target sequences:", counters.targets),
      std::to_string(counters.residues), by_sequence ? " nodes)\n" : " residues searched)\n");
  passed("Passed MSV filter:", counters.msv, filters.F1);
  passed("Passed bias filter:", counters.bias, filters.F1);
  passed("Passed Vit filter:", counters.viterbi, filters.F2);
  passed("Passed Fwd filter:", counters.forward, filters.F3);
  text::append(out, text::left("Initial search space (Z):", 29), text::fixed(hits.Z, 15, 0),
               hits.Z_is_set ? "  [as set by --Z on cmdline]\n" : "  [actual number of targets]\n",
               text::left("Domain search space  (domZ):", 29), text::fixed(hits.domZ, 15, 0),
               hits.domZ_is_set ? "  [as set by --domZ on cmdline]\n"
                                : "  [number of targets reported over threshold]\n");
  append_times(out, result.cpu_seconds, result.seconds,
               static_cast<double>(counters.residues) * model.M);
}

void append_cpu_time(std::string& out, double cpu_seconds, double seconds) {
  text::append(out, "# CPU time: ", text::fixed(cpu_seconds, 0, 2), "u 0.00s ",
               clock_text(cpu_seconds), " Elapsed: ", clock_text(seconds), '\n');
}

void append_times(std::string& out, double cpu_seconds, double seconds, double cells) {
  append_cpu_time(out, cpu_seconds, seconds);
  text::append(out, "# Mc/sec: ", text::fixed(seconds > 0 ? cells / (seconds * 1e6) : 0.0, 0, 2),
               '\n');
}

}  // namespace hmmjit
