#include "report/rounds.hpp"

#include <utility>

#include "build/hmm_text.hpp"
#include "report/a3m.hpp"
#include "report/records.hpp"
#include "report/stockholm.hpp"
#include "report/tables.hpp"

namespace hmmjit {
namespace {

constexpr std::size_t kAlignmentColumns = 200;

std::size_t included_domains(const HitList& hits) {
  std::size_t count = 0;
  for (const Hit& hit : hits.hits) {
    if (!hit.flags.included) continue;
    for (const Hit::Flags& flags : hit.domain_flags) count += flags.included;
  }
  return count;
}

MultipleAlignment to_codes(const HitAlignment& alignment, std::string name,
                           const QueryNames& query) {
  const Alphabet& alphabet = amino_alphabet();
  MultipleAlignment digital;
  digital.name = std::move(name);
  digital.accession = query.accession;
  digital.description = query.description;
  digital.alphabet = &alphabet;
  digital.columns = alignment.reference.size();
  digital.rf = alignment.reference;
  digital.residues.reserve(alignment.rows.size() * digital.columns);
  for (const HitAlignment::Row& row : alignment.rows) {
    digital.row_names.push_back(row.name);
    for (const char c : row.sequence)
      digital.residues.push_back(alphabet.digit[static_cast<unsigned char>(c)]);
  }
  return digital;
}

}  // namespace

QueryRounds::QueryRounds(const RoundOptions& options, QueryNames names,
                         std::span<const Residue> residues, build::BuiltModel first)
    : options_(options), names_(std::move(names)), model_(std::move(first)) {
  const Alphabet& alphabet = amino_alphabet();
  for (const Residue code : residues) residues_ += alphabet.symbols[code];
  std::string& out = output_.main;
  append_query(out, {.name = names_.name,
                     .accession = names_.accession,
                     .description = names_.description,
                     .M = model_.hmm.M,
                     .built = names_});
  out += '\n';
}

// '+': included, and not in the round before; '-': the other way round.
std::string QueryRounds::mark_hits(const HitList& hits, std::size_t* added) {
  std::string marks;
  std::set<std::string> now;
  *added = 0;
  for (const Hit& hit : hits.hits) {
    const bool before = seen_.contains(hit.name);
    marks += hit.flags.included && !before ? '+' : !hit.flags.included && before ? '-' : ' ';
    *added += marks.back() == '+';
    if (hit.flags.included) now.insert(hit.name);
  }
  seen_ = std::move(now);
  return marks;
}

void QueryRounds::make_tables(const ModelResult& result) {
  const ModelInfo& info = result.model;
  output_.totals.add(result);
  append_target_table_header(output_.targets_header, info, result.hits);
  append_domain_table_header(output_.domains_header, info, result.hits);
  if (options_.targets) append_target_table(output_.targets, info, result.hits);
  if (options_.domains) append_domain_table(output_.domains, info, result.hits);
  if (options_.tsv) append_tsv(output_.tsv, result);
  if (options_.json) append_json(output_.json, result, options_.report.alignments);
  if (options_.a3m) {
    ModelInfo query = info;
    query.consensus = residues_;  // the first row is the query, whatever the model has become
    std::size_t left = options_.report.aligned_targets;
    append_a3m(output_.a3m, query, result.hits, false, &left);
  }
}

void QueryRounds::finish_round(const ModelResult& result) {
  ++round_;
  const HitList& hits = result.hits;
  const ModelInfo& info = result.model;
  std::string& out = output_.main;
  if (round_ > 1) {
    const std::string rows = std::to_string(rows_);
    out += "@@\n@@ Round:                  " + std::to_string(round_);
    out += "\n@@ Included in MSA:        " + rows + " subsequences (query + " +
           std::to_string(rows_ - 1) + " subseqs from " + std::to_string(seen_.size()) +
           " targets)\n@@ Model size:             " + std::to_string(info.M) + " positions\n@@\n\n";
  }
  Checkpoint& checkpoint = checkpoints_.emplace_back();
  if (options_.model_checkpoints) {
    model_.hmm.calibration = result.calibration;
    build::append_hmm_text(checkpoint.model, model_, options_.program, options_.date);
  }
  std::size_t added = 0;
  const std::string marks = mark_hits(hits, &added);
  append_target_scores(out, hits, options_.report, marks);
  out += "\n\n";
  append_domain_annotation(out, info, hits, options_.report, 0, hits.hits.size());
  out += "\n\n";
  append_statistics(out, info, hits, options_.filters, {result.cpu_seconds, 0, result.seconds});

  const std::size_t before = std::exchange(rows_, 1 + included_domains(hits));
  out += "\n@@ New targets included:   " + std::to_string(added);
  out += "\n@@ New alignment includes: " + std::to_string(rows_) + " subseqs (was " +
         std::to_string(before) + "), including original query\n";
  checkpoint.rows = rows_;
  checkpoint.new_targets = added;
  converged_ = added == 0 && rows_ <= before;
  if (converged_)
    out += "@@\n@@ CONVERGED (in " + std::to_string(round_) + " rounds). \n@@\n\n";
  else if (round_ < options_.rounds)
    out += "@@ Continuing to next round.\n\n";
  done_ = converged_ || round_ >= options_.rounds;

  const std::string id = names_.name + "-i" + std::to_string(round_);
  const bool saved = done_ && !options_.alignment_path.empty();
  HitAlignment alignment;
  const bool limited = done_ && options_.report.aligned_targets != kAllTargets;
  if (!done_ || (saved && !limited) || options_.alignment_checkpoints)
    alignment = align_with_query(hits, names_.name, residues_);
  if (options_.alignment_checkpoints)
    append_stockholm(checkpoint.alignment, id, info, alignment, 0, options_.author);
  if (done_) {
    make_tables(result);
    if (saved) {
      if (limited)
        alignment = align_with_query(hits, names_.name, residues_, options_.report.aligned_targets);
      append_stockholm(output_.alignment, id, info, alignment,
                       options_.report.text_width == 0 ? 0 : kAlignmentColumns, options_.author);
      out += "# Alignment of " + std::to_string(alignment.rows.size()) +
             " hits satisfying inclusion thresholds saved to: " + options_.alignment_path + "\n";
    }
    out += "//\n";
    return;
  }
  auto built = build::build_from_alignment(to_codes(alignment, id, names_), options_.alignment);
  if (!built) {
    error_ = built.error();
    done_ = true;
    return;
  }
  model_ = *std::move(built);
}

}  // namespace hmmjit
