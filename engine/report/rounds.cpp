#include "report/rounds.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "build/hmm_writer.hpp"
#include "core/sorted.hpp"
#include "report/report_writer.hpp"
#include "report/stockholm.hpp"
#include "search/stored_hits.hpp"

namespace hmmjit {
namespace {

std::size_t included_domains(std::span<const Hit> hits) {
  std::size_t count = 0;
  for (const Hit& hit : hits) {
    if (!hit.flags.included) continue;
    for (const Hit::Flags& flags : hit.domain_flags) count += flags.included;
  }
  return count;
}

void append_row(MultipleAlignment& alignment, const std::string& name,
                const std::string& sequence) {
  alignment.row_names.push_back(name);
  for (const char c : sequence)
    alignment.residues.push_back(alignment.alphabet->digit[static_cast<unsigned char>(c)]);
}

}  // namespace

QueryRounds::QueryRounds(const RoundOptions& options, QueryNames names,
                         std::span<const Residue> residues, build::BuiltModel first,
                         std::size_t index)
    : options_(options), names_(std::move(names)), model_(std::move(first)), index_(index) {
  const Alphabet& alphabet = amino_alphabet();
  for (const Residue code : residues) residues_ += alphabet.symbols[code];
  query_rows_ = rows_ = residues.empty() ? 0 : 1;
  std::string& out = memory_text(OutputKind::kMain);
  append_query(out, {.name = names_.name,
                     .accession = names_.accession,
                     .description = names_.description,
                     .M = model_.hmm.M,
                     .built = names_});
  out += '\n';
}

Status TextStore::take(StoredText& text) {
  if (text.text.empty()) return {};
  if (!file_) {
    HMMJIT_ASSIGN(file_, SpoolFile::create());
  }
  const std::uint64_t begin = file_->size();
  HMMJIT_TRY(file_->append(text.text));
  text.text = {};
  if (!text.stored.empty() && text.stored.back().end == begin)
    text.stored.back().end = file_->size();
  else
    text.stored.push_back({begin, file_->size()});
  return {};
}

Status TextStore::read(const StoredText& text,
                       const std::function<Status(std::string_view)>& use) {
  constexpr std::uint64_t kAtATime = std::uint64_t{256} << 10;
  std::string bytes;
  for (const auto& [begin, end] : text.stored) {
    for (std::uint64_t at = begin; at < end; at += bytes.size()) {
      HMMJIT_TRY(file_->read(at, std::min(kAtATime, end - at), bytes));
      if (bytes.empty()) return damaged_spool_file();
      HMMJIT_TRY(use(bytes));
    }
  }
  return text.text.empty() ? Status{} : use(text.text);
}

std::size_t QueryRounds::text_bytes() const {
  std::size_t bytes = 0;
  for (const StoredText& text : texts_) bytes += text.text.size();
  for (const Checkpoint& checkpoint : checkpoints_)
    bytes += checkpoint.model.text.size() + checkpoint.alignment.text.size();
  return bytes;
}

Status QueryRounds::store_texts(TextStore& store) {
  for (StoredText& text : texts_) HMMJIT_TRY(store.take(text));
  for (Checkpoint& checkpoint : checkpoints_) {
    HMMJIT_TRY(store.take(checkpoint.model));
    HMMJIT_TRY(store.take(checkpoint.alignment));
  }
  return {};
}

std::string QueryRounds::mark_hits(const HitLot& lot, std::set<std::string>& now,
                                   std::size_t& added) const {
  std::string marks;
  for (const Hit& hit : lot.hits) {
    const bool before = seen_.contains(hit.name);
    marks += hit.flags.included && !before ? '+' : !hit.flags.included && before ? '-' : ' ';
    added += marks.back() == '+';
    if (hit.flags.included) now.insert(hit.name);
  }
  return marks;
}

void QueryRounds::begin_round(const ModelResult& result) {
  ++round_;
  std::string& out = memory_text(OutputKind::kMain);
  if (round_ > 1) {
    const std::string rows = std::to_string(rows_);
    out += "@@\n@@ Round:                  " + std::to_string(round_);
    out += "\n@@ Included in MSA:        " + rows + " subsequences (" +
           (query_rows_ > 0 ? "query + " : "") + std::to_string(rows_ - query_rows_) +
           " subseqs from " + std::to_string(seen_.size()) +
           " targets)\n@@ Model size:             " + std::to_string(result.model.M) +
           " positions\n@@\n\n";
  }
  Checkpoint& checkpoint = checkpoints_.emplace_back();
  if (options_.model_checkpoints) {
    model_.hmm.calibration = result.calibration;
    build::append_hmm_text(checkpoint.model.text, model_, options_.program, options_.date);
  }
}

// Writes the statistics, then whether another round follows.
void QueryRounds::end_hits(const ModelResult& result, std::size_t added, std::size_t included) {
  std::string& out = memory_text(OutputKind::kMain);
  append_statistics(out, result, options_.output.filters);
  const std::size_t before = std::exchange(rows_, query_rows_ + included);
  out += "\n@@ New targets included:   " + std::to_string(added);
  out += "\n@@ New alignment includes: " + std::to_string(rows_) + " subseqs (was " +
         std::to_string(before) + ")" + (query_rows_ > 0 ? ", including original query" : "") +
         "\n";
  checkpoints_.back().rows = rows_;
  checkpoints_.back().new_targets = added;
  if (converged_)
    out += "@@\n@@ CONVERGED (in " + std::to_string(round_) + " rounds). \n@@\n\n";
  else if (round_ < options_.rounds)
    out += "@@ Continuing to next round.\n\n";
}

void QueryRounds::end_query(std::size_t saved_rows) {
  if (saved_rows > 0)
    memory_text(OutputKind::kMain) += "# Alignment of " + std::to_string(saved_rows) +
                    " hits satisfying inclusion thresholds saved to: " +
                    path_of_query(options_.alignment_path, names_.name) + "\n";
  memory_text(OutputKind::kMain) += "//\n";
}

MultipleAlignment QueryRounds::empty_alignment(std::string reference) const {
  MultipleAlignment digital;
  digital.name = alignment_id();
  digital.accession = names_.accession;
  digital.description = names_.description;
  digital.alphabet = &amino_alphabet();
  digital.columns = reference.size();
  digital.rf = std::move(reference);
  return digital;
}

void QueryRounds::build_next(const MultipleAlignment& alignment) {
  auto built = build::build_from_alignment(alignment, options_.alignment);
  if (built) {
    model_ = *std::move(built);
  } else {
    error_ = built.error();
    done_ = true;
  }
}

Status QueryRounds::finish_round(const ModelResult& result, TextStore* store) {
  begin_round(result);
  const ReportOptions& report = options_.output.report;
  const std::uint64_t memory = result.stored == nullptr ? std::numeric_limits<std::uint64_t>::max()
                                                        : result.stored->output_memory();
  const bool saves = !options_.alignment_path.empty();
  AlignedRows rows{.upper_case = true, .query_name = names_.name, .query = residues_};
  AlignmentColumns all(result.model, rows, memory);
  rows.targets = report.aligned_targets;
  AlignmentColumns best(result.model, rows, memory);
  const bool needs_all = round_ < options_.rounds || options_.alignment_checkpoints;

  std::string& out = memory_text(OutputKind::kMain);
  append_score_titles(out, result.hits, report);
  std::size_t added = 0, included = 0;
  std::set<std::string> now;
  bool above = true;
  const Status scored = for_each_lot(result, [&](const HitLot& lot) -> Status {
    append_score_rows(out, lot, report, above, mark_hits(lot, now, added));
    included += included_domains(lot.hits);
    if (needs_all) HMMJIT_TRY(all.measure(lot.hits));
    if (saves) HMMJIT_TRY(best.measure(lot.hits));
    return store == nullptr ? Status{} : store_texts(*store);
  });
  HMMJIT_TRY(scored);
  seen_ = std::move(now);
  converged_ = query_rows_ + included == 0 || (added == 0 && query_rows_ + included <= rows_);
  done_ = converged_ || round_ >= options_.rounds;
  append_annotation_title(out, result.hits, report);

  HMMJIT_TRY(all.finish());
  HMMJIT_TRY(best.finish());
  const std::size_t width = report.text_width == 0 ? 0 : kAlignmentColumns;
  const std::string& author = options_.output.author;
  StockholmRecord checkpoint(all, alignment_id(), 0, author, memory);
  StockholmRecord saved(best, alignment_id(), width, author, memory);
  MultipleAlignment digital = empty_alignment(all.reference());
  if (!done_) digital.residues.reserve(all.rows() * digital.columns);
  if (!done_ && query_rows_ > 0) append_row(digital, names_.name, all.query_row());
  std::size_t targets_left = kAllTargets;
  totals_ = without_hits(result);
  totals_.index = index_;
  // The first row stays the query, although the model has changed.
  if (query_rows_ > 0) totals_.model.consensus = residues_;
  Outputs tables;
  if (done_) {
    counts_.add(result);
    for (const OutputKind kind : options_.tables) {
      tables.push_back(make_output(kind, totals_, options_.output));
      tables.back()->begin(memory_text(kind));
    }
  }
  const Status annotated = for_each_lot(result, [&](const HitLot& lot) -> Status {
    append_annotation_rows(out, lot, report);
    if (options_.alignment_checkpoints) HMMJIT_TRY(checkpoint.add(lot.hits));
    if (done_) {
      counts_.add_domains(lot.hits);
      for (const auto& table : tables)
        HMMJIT_TRY(table->format(0, HitLot(totals_, lot.hits), memory_text(table->kind())));
      if (saves) HMMJIT_TRY(saved.add(lot.hits));
    } else {
      HMMJIT_TRY(all.for_each_row(lot.hits, targets_left, [&](const AlignedDomain& row) -> Status {
        append_row(digital, row.name, row.sequence);
        return {};
      }));
    }
    return store == nullptr ? Status{} : store_texts(*store);
  });
  HMMJIT_TRY(annotated);
  end_hits(result, added, included);

  const auto append_to = [&](StoredText& to) {
    return [&, store](std::string_view piece) -> Status {
      to.text += piece;
      return store == nullptr ? Status{} : store->take(to);
    };
  };
  if (options_.alignment_checkpoints)
    HMMJIT_TRY(checkpoint.write(append_to(checkpoints_.back().alignment)));
  if (!done_) {
    build_next(digital);
    return {};
  }
  if (saves)
    HMMJIT_TRY(saved.write(append_to(texts_[static_cast<std::size_t>(OutputKind::kAlignment)])));
  end_query(saves ? best.rows() : 0);
  return {};
}

}  // namespace hmmjit
