#include "report/rounds.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "build/hmm_writer.hpp"
#include "report/a3m.hpp"
#include "report/records.hpp"
#include "report/stockholm.hpp"
#include "report/tables.hpp"

namespace hmmjit {
namespace {

std::size_t included_domains(const HitList& hits) {
  std::size_t count = 0;
  for (const Hit& hit : hits.hits) {
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

// The texts of a query; their places in this list are the kinds of pieces in a TextStore.
constexpr std::string QueryOutput::*kTexts[] = {
    &QueryOutput::main, &QueryOutput::alignment, &QueryOutput::targets, &QueryOutput::domains,
    &QueryOutput::pfam, &QueryOutput::tsv,       &QueryOutput::json,    &QueryOutput::a3m,
    &QueryOutput::target_tsv};
// The same of a checkpoint. Both have the alignment in the same place.
constexpr std::string QueryRounds::Checkpoint::*kCheckpointTexts[] = {
    &QueryRounds::Checkpoint::model, &QueryRounds::Checkpoint::alignment};
constexpr std::size_t kAlignmentText = 1;

}  // namespace

QueryRounds::QueryRounds(const RoundOptions& options, QueryNames names,
                         std::span<const Residue> residues, build::BuiltModel first)
    : options_(options), names_(std::move(names)), model_(std::move(first)) {
  const Alphabet& alphabet = amino_alphabet();
  for (const Residue code : residues) residues_ += alphabet.symbols[code];
  query_rows_ = rows_ = residues.empty() ? 0 : 1;
  std::string& out = output_.main;
  append_query(out, {.name = names_.name,
                     .accession = names_.accession,
                     .description = names_.description,
                     .M = model_.hmm.M,
                     .built = names_});
  out += '\n';
}

Status TextStore::take(std::size_t kind, std::string& text, std::vector<Piece>& pieces) {
  if (text.empty()) return {};
  if (!file_) {
    HMMJIT_ASSIGN(file_, SpoolFile::create());
  }
  const std::uint64_t begin = file_->size();
  HMMJIT_TRY(file_->append(text));
  text = {};
  if (!pieces.empty() && pieces.back().kind == kind && pieces.back().end == begin)
    pieces.back().end = file_->size();
  else
    pieces.push_back({kind, begin, file_->size()});
  return {};
}

Status TextStore::read(const Piece& piece, const std::function<Status(const std::string&)>& use) {
  constexpr std::uint64_t kAtATime = std::uint64_t{256} << 10;
  std::string bytes;
  for (std::uint64_t at = piece.begin; at < piece.end; at += bytes.size()) {
    HMMJIT_TRY(file_->read(at, std::min(kAtATime, piece.end - at), bytes));
    if (bytes.empty())
      return fail(ErrorCode::kOutput, "a temporary file does not hold what was written to it", {},
                  "check the disk, or set TMPDIR to another folder");
    HMMJIT_TRY(use(bytes));
  }
  return {};
}

std::size_t QueryRounds::text_bytes() const {
  std::size_t bytes = 0;
  for (const auto text : kTexts) bytes += (output_.*text).size();
  for (const Checkpoint& checkpoint : checkpoints_)
    for (const auto text : kCheckpointTexts) bytes += (checkpoint.*text).size();
  return bytes;
}

Status QueryRounds::store_texts(TextStore& texts) {
  for (std::size_t kind = 0; kind < std::size(kTexts); ++kind)
    HMMJIT_TRY(texts.take(kind, output_.*kTexts[kind], stored_));
  for (Checkpoint& checkpoint : checkpoints_)
    for (std::size_t kind = 0; kind < std::size(kCheckpointTexts); ++kind)
      HMMJIT_TRY(texts.take(kind, checkpoint.*kCheckpointTexts[kind], checkpoint.stored));
  return {};
}

Status QueryRounds::write(
    TextStore& texts, const std::function<Status(const QueryOutput&)>& output,
    const std::function<Status(std::size_t, const std::string&, const std::string&)>& checkpoint) {
  for (std::size_t round = 0; round < checkpoints_.size(); ++round) {
    const Checkpoint& of = checkpoints_[round];
    for (const TextStore::Piece& piece : of.stored) {
      const Status written = texts.read(piece, [&](const std::string& bytes) {
        Checkpoint part;
        part.*kCheckpointTexts[piece.kind] = bytes;
        return checkpoint(round, part.model, part.alignment);
      });
      HMMJIT_TRY(written);
    }
    HMMJIT_TRY(checkpoint(round, of.model, of.alignment));
  }
  for (const TextStore::Piece& piece : stored_) {
    const Status written = texts.read(piece, [&](const std::string& bytes) {
      QueryOutput part;
      part.targets_header = output_.targets_header;
      part.domains_header = output_.domains_header;
      part.*kTexts[piece.kind] = bytes;
      return output(part);
    });
    HMMJIT_TRY(written);
  }
  return output(output_);
}

std::string QueryRounds::mark_hits(const HitList& hits, std::set<std::string>& now,
                                   std::size_t* added) const {
  std::string marks;
  for (const Hit& hit : hits.hits) {
    const bool before = seen_.contains(hit.name);
    marks += hit.flags.included && !before ? '+' : !hit.flags.included && before ? '-' : ' ';
    *added += marks.back() == '+';
    if (hit.flags.included) now.insert(hit.name);
  }
  return marks;
}

void QueryRounds::add_table_headers(const ModelResult& result) {
  append_target_table_header(output_.targets_header, result.model, result.hits);
  append_domain_table_header(output_.domains_header, result.model, result.hits);
  output_.totals.add(result);
}

void QueryRounds::add_table_rows(const ModelResult& result, AlignedSoFar& aligned) {
  const ModelInfo& info = result.model;
  if (options_.targets) append_target_table(output_.targets, info, result.hits);
  if (options_.domains) append_domain_table(output_.domains, info, result.hits);
  const RecordOptions& records = options_.report.records;
  if (options_.tsv) append_tsv(output_.tsv, result, records);
  if (options_.target_tsv) append_target_tsv(output_.target_tsv, result, records);
  if (options_.json) append_json_targets(output_.json, result, options_.report.alignments, records);
  if (options_.a3m) {
    ModelInfo query = info;
    // The first row is the query, whatever the model has become.
    if (query_rows_ > 0) query.consensus = residues_;
    aligned.rows +=
        append_a3m(output_.a3m, query, result.hits, aligned.rows > 0, &aligned.targets_left);
  }
}

void QueryRounds::begin_round(const ModelResult& result) {
  ++round_;
  std::string& out = output_.main;
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
    build::append_hmm_text(checkpoint.model, model_, options_.program, options_.date);
  }
}

// What follows the hits: statistics, and whether there is another round.
void QueryRounds::end_hits(const ModelResult& result, std::size_t added, std::size_t included) {
  std::string& out = output_.main;
  out += "\n\n";
  append_statistics(out, result.model, result.hits, options_.filters,
                    {result.cpu_seconds, 0, result.seconds});
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
    output_.main += "# Alignment of " + std::to_string(saved_rows) +
                    " hits satisfying inclusion thresholds saved to: " +
                    path_of_query(options_.alignment_path, names_.name) + "\n";
  output_.main += "//\n";
}

MultipleAlignment QueryRounds::empty_alignment(std::string reference) const {
  MultipleAlignment digital;
  digital.name = alignment_id();
  digital.accession = names_.accession;
  digital.description = names_.description;
  digital.alphabet = &amino_alphabet();
  digital.columns = reference.size();
  digital.rf = std::move(reference);
  digital.residues.reserve(rows_ * digital.columns);
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

void QueryRounds::finish_round(const ModelResult& result) {
  begin_round(result);
  const HitList& hits = result.hits;
  std::string& out = output_.main;
  std::size_t added = 0;
  std::set<std::string> now;
  const std::string marks = mark_hits(hits, now, &added);
  seen_ = std::move(now);
  append_target_scores(out, hits, options_.report, marks);
  out += "\n\n";
  append_domain_annotation(out, result.model, hits, options_.report, 0, hits.hits.size());
  const std::size_t included = included_domains(hits);
  converged_ = query_rows_ + included == 0 || (added == 0 && query_rows_ + included <= rows_);
  done_ = converged_ || round_ >= options_.rounds;
  end_hits(result, added, included);

  const bool saved = done_ && !options_.alignment_path.empty();
  HitAlignment alignment;
  const bool limited = done_ && options_.report.aligned_targets != kAllTargets;
  if (!done_ || (saved && !limited) || options_.alignment_checkpoints)
    alignment = align_with_query(hits, result.model.M, names_.name, residues_);
  if (options_.alignment_checkpoints && !alignment.rows.empty())
    append_stockholm(checkpoints_.back().alignment, alignment_id(), result.model, alignment, 0,
                     options_.author);
  if (done_) {
    add_table_headers(result);
    if (options_.json) append_json_model(output_.json, result, options_.report.records);
    AlignedSoFar aligned{0, options_.report.aligned_targets};
    add_table_rows(result, aligned);
    if (saved) {
      if (limited)
        alignment = align_with_query(hits, result.model.M, names_.name, residues_,
                                     options_.report.aligned_targets);
      append_stockholm(output_.alignment, alignment_id(), result.model, alignment,
                       options_.report.text_width == 0 ? 0 : kAlignmentColumns, options_.author);
    }
    end_query(saved ? alignment.rows.size() : 0);
    return;
  }
  MultipleAlignment digital = empty_alignment(alignment.reference);
  for (const HitAlignment::Row& row : alignment.rows) append_row(digital, row.name, row.sequence);
  build_next(digital);
}

Status QueryRounds::finish_round_in_lots(const ModelResult& result, TextStore& texts) {
  begin_round(result);
  const auto lots = [&](const std::function<Status(const ModelResult&)>& use) {
    ModelResult lot = result;
    return result.stored->in_lots([&](std::vector<Hit>& hits) -> Status {
      lot.hits.hits.swap(hits);
      const Status used = use(lot);
      lot.hits.hits.swap(hits);
      HMMJIT_TRY(used);
      return store_texts(texts);
    });
  };
  const StreamedStockholm::HitPass pass = [&](const std::function<Status(const Hit&)>& use) {
    return lots([&](const ModelResult& lot) -> Status {
      for (const Hit& hit : lot.hits.hits) HMMJIT_TRY(use(hit));
      return {};
    });
  };
  // Whether this round is the last is known after the first pass.
  const bool may_be_saved = !options_.alignment_path.empty();
  const bool limited = options_.report.aligned_targets != kAllTargets;
  const std::size_t columns = options_.report.text_width == 0 ? 0 : kAlignmentColumns;
  const AlignedQuery first_row{alignment_id(), names_.name, residues_};
  std::optional<StreamedStockholm> all, best;
  if (round_ < options_.rounds || (may_be_saved && !limited)) {
    HMMJIT_ASSIGN(all, StreamedStockholm::create(result.model, columns, options_.author,
                                                 kAllTargets, first_row));
  }
  if (may_be_saved && limited) {
    HMMJIT_ASSIGN(best, StreamedStockholm::create(result.model, columns, options_.author,
                                                  options_.report.aligned_targets, first_row));
  }

  std::string& out = output_.main;
  append_score_titles(out, result.hits, options_.report);
  std::size_t added = 0, included = 0;
  std::set<std::string> now;
  bool above = true;
  const Status scored = lots([&](const ModelResult& lot) -> Status {
    const std::string marks = mark_hits(lot.hits, now, &added);
    append_score_rows(out, lot.hits, options_.report, above, marks);
    included += included_domains(lot.hits);
    for (const Hit& hit : lot.hits.hits) {
      if (all) HMMJIT_TRY(all->measure(hit));
      if (best) HMMJIT_TRY(best->measure(hit));
    }
    return {};
  });
  HMMJIT_TRY(scored);
  seen_ = std::move(now);
  converged_ = query_rows_ + included == 0 || (added == 0 && query_rows_ + included <= rows_);
  done_ = converged_ || round_ >= options_.rounds;

  out += "\n\n";
  append_annotation_title(out, options_.report);
  if (done_) {
    add_table_headers(result);
    if (options_.json) append_json_model(output_.json, result, options_.report.records);
  }
  AlignedSoFar aligned{0, options_.report.aligned_targets};
  const Status annotated = lots([&](const ModelResult& lot) -> Status {
    append_annotation_rows(out, lot.model, lot.hits, options_.report, 0, lot.hits.hits.size());
    if (!done_) return {};
    output_.totals.add_domains(lot.hits);
    add_table_rows(lot, aligned);
    return {};
  });
  HMMJIT_TRY(annotated);
  end_hits(result, added, included);

  if (options_.alignment_checkpoints) {
    Checkpoint& checkpoint = checkpoints_.back();
    HMMJIT_ASSIGN(
        StreamedStockholm one_block,
        StreamedStockholm::create(result.model, 0, options_.author, kAllTargets, first_row));
    HMMJIT_TRY(pass([&](const Hit& hit) { return one_block.measure(hit); }));
    HMMJIT_TRY(one_block.end_measuring());
    const Status written = one_block.write(pass, [&](std::string_view piece) {
      checkpoint.alignment += piece;
      return texts.take(kAlignmentText, checkpoint.alignment, checkpoint.stored);
    });
    HMMJIT_TRY(written);
  }
  std::size_t rows = 0;
  if (all) {
    HMMJIT_ASSIGN(rows, all->end_measuring());
  }
  if (done_) {
    if (best) {
      HMMJIT_ASSIGN(rows, best->end_measuring());
    }
    if (may_be_saved) {
      StreamedStockholm& saved = limited ? *best : *all;
      const Status written = saved.write(pass, [&](std::string_view piece) {
        output_.alignment += piece;
        return texts.take(kAlignmentText, output_.alignment, stored_);
      });
      HMMJIT_TRY(written);
    }
    end_query(may_be_saved ? rows : 0);
    return store_texts(texts);
  }
  MultipleAlignment digital = empty_alignment(all->reference());
  const Status aligned_rows =
      all->for_each_row(pass, [&](const std::string& name, const std::string& sequence) {
        append_row(digital, name, sequence);
      });
  HMMJIT_TRY(aligned_rows);
  build_next(digital);
  return store_texts(texts);
}

}  // namespace hmmjit
