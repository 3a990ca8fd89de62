#include "report/report_writer.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "core/descriptor.hpp"
#include "report/kept_rows.hpp"

namespace hmmjit {
namespace {

// Formatting this many domains takes about a millisecond.
constexpr std::size_t kDomainsOfPiece = 256;

Status write_standard_output(int descriptor, std::string_view text) {
  if (const int error = write_all(descriptor, text))
    return fail(ErrorCode::kOutput, std::string("cannot write: ") + std::strerror(error),
                kStandardOutput, "check where it is redirected to");
  return {};
}

Status complete_standard_output(int descriptor) {
  HMMJIT_TRY(write_standard_output(descriptor, "[ok]\n"));
  // Network file systems may report a full disk only on close.
  const int second = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (second >= 0 && ::close(second) != 0 && errno != EINTR)
    return fail(ErrorCode::kOutput, std::string("cannot close: ") + std::strerror(errno),
                kStandardOutput, "check where it is redirected to");
  return {};
}

}  // namespace

std::string path_of_query(std::string path, std::string_view query) {
  constexpr std::string_view kQuery = "{query}";
  std::string name(query);
  std::ranges::replace(name, '/', '_');
  for (std::size_t at = 0; (at = path.find(kQuery, at)) != path.npos; at += name.size())
    path.replace(at, kQuery.size(), name);
  return path;
}

Result<std::unique_ptr<ReportWriter>> ReportWriter::create(
    const ReportPaths& paths, const ReportOptions& options, const FilterOptions& filters,
    std::string author, const std::string& header, JoinedOutputs* joined) {
  std::unique_ptr<ReportWriter> writer(new ReportWriter);
  writer->settings_ = {options, filters, std::move(author)};
  writer->header_ = header;
  writer->standard_output_ = paths.standard_output;
  writer->alignment_name_ = paths.alignment_name;
  writer->saved_as_ = writer->alignment_name_;
  writer->joined_ = joined;
  std::size_t of_earlier_search = 0;
  for (const auto& [kind, path] : paths.files) {
    File& output = writer->file_of(kind);
    output.path = path;
    output.by_query = path.contains("{query}");
    output.joined = joined != nullptr && joined->kinds.contains(kind);
    if (path.empty() || output.by_query) continue;
    if (output.joined && joined->begun) {
      output.file = std::move(joined->files.at(of_earlier_search++));
      output.begun = true;
    } else {
      HMMJIT_ASSIGN(output.file, TextOutput::create(path));
    }
    const bool by_target = kind == OutputKind::kTargets || kind == OutputKind::kDomains;
    if (options.records.kept &&
        (by_target ? !options.scan
                   : kind == OutputKind::kPfam || kind == OutputKind::kDfam ||
                         kind == OutputKind::kTsv || kind == OutputKind::kJson)) {
      HMMJIT_ASSIGN(output.held, SpoolFile::create());
    }
  }
  if (options.scan) writer->scan_.emplace(*options.scan, options.scan_memory);
  if (options.begins && !writer->file_of(OutputKind::kMain).by_query)
    HMMJIT_TRY(writer->put(OutputKind::kMain, header));
  return writer;
}

Status ReportWriter::put(OutputKind kind, std::string_view text) {
  File& output = file_of(kind);
  if (output.held) return output.held->append(text);
  if (!output.file)
    return kind == OutputKind::kMain ? write_standard_output(standard_output_, text) : Status{};
  output.file->write(text);
  return output.file->status();
}

Status ReportWriter::begin_query(const std::string& name) {
  query_totals_ = {};
  saved_as_ = path_of_query(alignment_name_, name);
  bool any = false;
  for (File& output : files_) {
    if (!output.by_query) continue;
    any = true;
    const NamedFile file{"the output of query " + name, path_of_query(output.path, name)};
    HMMJIT_TRY(check_outputs({&file, 1}, other_files_));
    HMMJIT_ASSIGN(output.file, TextOutput::create(file.path));
    output.begun = false;
  }
  // Compare file names: query names may differ only in characters that file names cannot contain.
  if (any && !queries_.insert(path_of_query("{query}", name)).second)
    return fail(ErrorCode::kInput, "two queries are called " + name, {},
                "give each query a name of its own, or leave {query} out of the names of outputs");
  return file_of(OutputKind::kMain).by_query ? put(OutputKind::kMain, header_) : Status{};
}

Status ReportWriter::end_query() {
  std::vector<OutputFile*> files;
  for (const OutputKind kind : kAllOutputs) {
    File& output = file_of(kind);
    if (!output.by_query) continue;
    HMMJIT_TRY(write_trailer(kind, run_, query_totals_));
    HMMJIT_TRY(output.file->flush());
    files.push_back(&output.file->file());
  }
  HMMJIT_TRY(OutputFile::publish(files));
  for (File& output : files_) {
    if (output.by_query) output.file.reset();
  }
  return {};
}

Outputs ReportWriter::make_outputs(const ModelResult& result) const {
  Outputs outputs;
  for (const OutputKind kind : kAllOutputs) {
    const bool by_target = scan_ && (kind == OutputKind::kTargets || kind == OutputKind::kDomains);
    if ((wanted(kind) && !by_target) || kind == OutputKind::kMain)
      outputs.push_back(make_output(kind, result, settings_));
  }
  return outputs;
}

// The text of one model with all hits in memory, in pieces. Threads may make the pieces in any
// order while the result lives.
class ReportWriter::Texts final : public PreparedResult {
 public:
  Texts(const ReportWriter& writer, const ModelResult& result)
      : result_(result), outputs_(writer.make_outputs(result)) {
    const std::span<const Hit> hits = result.hits.hits;
    divided_ = lot_of(hits).size() < hits.size();
    for (const auto& output : outputs_) add_pieces(*output);
  }

  // A small result has a single part.
  std::size_t parts() const override { return divided_ ? pieces_.size() : 1; }
  void make(std::size_t part) override {
    if (divided_) return make_piece(pieces_[part]);
    for (Piece& piece : pieces_) make_piece(piece);
  }
  std::size_t bytes() const override {
    std::size_t sum = sizeof *this + pieces_.capacity() * sizeof(Piece);
    for (const Piece& piece : pieces_) sum += piece.text.capacity();
    return sum;
  }

  Status write_to(ReportWriter& writer) const {
    for (const Piece& piece : pieces_) {
      HMMJIT_TRY(piece.status);
      HMMJIT_TRY(writer.put(piece.kind, piece.text));
    }
    return {};
  }
  const Outputs& outputs() const { return outputs_; }

 private:
  using Step = std::function<Status(std::string&)>;
  struct Piece {
    OutputKind kind;
    std::vector<Step> steps;  // in order
    std::string text;
    Status status;
  };

  // The first hits with at least kDomainsOfPiece domains, or all hits.
  static std::span<const Hit> lot_of(std::span<const Hit> hits) {
    std::size_t count = 0, domains = 0;
    while (count < hits.size() && domains < kDomainsOfPiece)
      domains += hits[count++].score.domains.size();
    return hits.first(count);
  }
  void add_pieces(Output& output) {
    const auto add_piece = [&] { pieces_.push_back({output.kind(), {}, {}, {}}); };
    const auto add_step = [&](Step step) { pieces_.back().steps.push_back(std::move(step)); };
    const auto add_lot = [&](int pass, std::span<const Hit> lot) {
      add_step([this, &output, pass, lot](std::string& text) {
        return output.format(pass, HitLot(result_, lot), text);
      });
    };
    add_piece();
    add_step([&output](std::string& text) -> Status {
      output.begin(text);
      return {};
    });
    for (int pass = 0; pass < output.passes(); ++pass) {
      std::span<const Hit> hits = result_.hits.hits;
      if (!divided_ || !output.independent(pass)) {
        add_lot(pass, hits);
      } else {
        for (; !hits.empty(); hits = hits.subspan(lot_of(hits).size())) {
          add_piece();
          add_lot(pass, lot_of(hits));
        }
        add_piece();
      }
      add_step([&output, pass](std::string& text) {
        return output.end(pass, [&text](std::string_view more) -> Status {
          text += more;
          return {};
        });
      });
    }
  }
  static void make_piece(Piece& piece) {
    for (Step& step : piece.steps) {
      if (piece.status) piece.status = step(piece.text);
    }
    piece.steps = {};
  }

  const ModelResult& result_;
  Outputs outputs_;
  std::vector<Piece> pieces_;
  bool divided_ = false;
};

// Counts the domains and keeps the hits for tables by target.
class ReportWriter::Counts final : public Output {
 public:
  explicit Counts(ReportWriter& writer) : Output(OutputKind::kMain), writer_(writer) {}
  Status format(int, const HitLot& lot, std::string&) override {
    RunTotals domains;
    domains.add_domains(lot.hits);
    writer_.count(domains);
    const bool keep = writer_.scan_ && !writer_.settings_.report.scan_by_range;
    return keep ? writer_.scan_->add(lot) : Status{};
  }

 private:
  ReportWriter& writer_;
};

void ReportWriter::count(const RunTotals& totals) {
  totals_.add(totals);
  query_totals_.add(totals);
}

std::shared_ptr<PreparedResult> ReportWriter::prepare(const ModelResult& result) const {
  return std::make_shared<Texts>(*this, result);
}

Status ReportWriter::receive(const ModelResult& result) {
  HMMJIT_TRY(begin_query(result.model.name));
  HMMJIT_TRY(begin_model(result));
  RunTotals model;
  model.add(result);
  count(model);
  std::size_t aligned = 0;
  if (const auto texts = std::dynamic_pointer_cast<const Texts>(result.prepared)) {
    std::string none;
    HMMJIT_TRY(Counts(*this).format(0, result, none));
    HMMJIT_TRY(texts->write_to(*this));
    for (const auto& output : texts->outputs()) aligned += output->rows();
  } else {
    Outputs outputs = make_outputs(result);
    outputs.push_back(std::make_unique<Counts>(*this));
    HMMJIT_TRY(write_model(result, outputs, [this](OutputKind kind, std::string_view text) {
      return put(kind, text);
    }));
    for (const auto& output : outputs) aligned += output->rows();
  }
  HMMJIT_TRY(write_saved_alignment(aligned));
  return end_query();
}

Status ReportWriter::begin_model(const ModelResult& totals) {
  // A writer of a later slice of the models writes no headers.
  if (totals.index != 0 && std::ranges::none_of(files_, &File::by_query)) return {};
  for (const OutputKind kind : kAllOutputs) {
    const bool by_target = scan_ && (kind == OutputKind::kTargets || kind == OutputKind::kDomains);
    if (std::exchange(file_of(kind).begun, true) || !wanted(kind) || by_target) continue;
    std::string text;
    append_output_header(text, kind, totals, settings_.report.records);
    HMMJIT_TRY(put(kind, text));
  }
  return {};
}

Status ReportWriter::write_saved_alignment(std::size_t rows) {
  const File& alignment = file_of(OutputKind::kAlignment);
  if (!alignment.file) return {};
  return put(OutputKind::kMain,
             rows == 0 ? "# No hits satisfy inclusion thresholds; no alignment saved\n"
                       : "# Alignment of " + std::to_string(rows) +
                             " hits satisfying inclusion thresholds saved to: " + saved_as_ + "\n");
}

Status ReportWriter::receive_scan(ScanTables& tables, bool only_with_hits) {
  const auto to = [this](OutputKind kind) -> std::function<Status(std::string_view)> {
    if (!wanted(kind)) return {};
    return [this, kind](std::string_view text) { return put(kind, text); };
  };
  HMMJIT_ASSIGN(const bool begun, tables.write({to(OutputKind::kTargets), to(OutputKind::kDomains)},
                                               scan_begun_, only_with_hits, kept_));
  scan_begun_ |= begun;
  return {};
}

Status ReportWriter::write_trailer(OutputKind kind, const RunDescription& run,
                                   const RunTotals& totals) {
  std::string text;
  append_output_trailer(text, kind, run, totals);
  return put(kind, text);
}

Status ReportWriter::release(OutputKind kind) {
  SpoolFile held = *std::exchange(file_of(kind).held, std::nullopt);
  KeptRows rows(kind, kept_);
  std::string text;
  return held.for_each([&](std::string_view bytes) -> Status {
    text.clear();
    rows.append(text, bytes);
    return put(kind, text);
  });
}

Status ReportWriter::complete(const RunDescription& run, std::span<OutputFile* const> others,
                              OutputFile::Afterwards afterwards) {
  const ReportOptions& options = settings_.report;
  if (scan_ && !options.scan_by_range) HMMJIT_TRY(receive_scan(*scan_, false));
  for (const OutputKind kind : kAllOutputs) {
    if (file_of(kind).held) HMMJIT_TRY(release(kind));
  }
  std::vector<OutputFile*> files(others.begin(), others.end());
  for (OutputFile* file : others) HMMJIT_TRY(file->flush());
  if (joined_ != nullptr) joined_->files.clear();
  for (const OutputKind kind : kAllOutputs) {
    File& output = file_of(kind);
    if (!output.file) continue;
    if (options.ends) HMMJIT_TRY(write_trailer(kind, run, totals_));
    HMMJIT_TRY(output.file->status());
    if (output.joined && !joined_->ends) {
      joined_->files.push_back(*std::move(output.file));
      output.file.reset();
      continue;
    }
    HMMJIT_TRY(output.file->flush());  // ends compressed data
    files.push_back(&output.file->file());
  }
  if (joined_ != nullptr) joined_->begun = true;
  // Standard output is the last step that can fail before files are renamed.
  if (file_of(OutputKind::kMain).path.empty() && options.ends)
    HMMJIT_TRY(complete_standard_output(standard_output_));
  return OutputFile::publish(files, afterwards);
}

}  // namespace hmmjit
