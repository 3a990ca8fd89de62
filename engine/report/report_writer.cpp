#include "report/report_writer.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "report/a3m.hpp"
#include "report/stockholm.hpp"

namespace hmmjit {
namespace {

// The text of so many domains takes a millisecond.
constexpr std::size_t kDomainsOfPiece = 256;

Status write_standard_output(const std::string& text) {
  const char* data = text.data();
  std::size_t left = text.size();
  while (left > 0) {
    const ssize_t written = ::write(STDOUT_FILENO, data, left);
    if (written < 0) {
      if (errno == EINTR) continue;
      return fail(ErrorCode::kOutput, std::string("cannot write: ") + std::strerror(errno),
                  kStandardOutput, "check where it is redirected to");
    }
    data += written;
    left -= static_cast<std::size_t>(written);
  }
  return {};
}

Status complete_standard_output() {
  HMMJIT_TRY(write_standard_output("[ok]\n"));
  // Network file systems may say only here that there was no room.
  const int second = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
  if (second >= 0 && ::close(second) != 0 && errno != EINTR)
    return fail(ErrorCode::kOutput, std::string("cannot close: ") + std::strerror(errno),
                kStandardOutput, "check where it is redirected to");
  return {};
}

}  // namespace

Result<std::unique_ptr<ReportWriter>> ReportWriter::create(const ReportPaths& paths,
                                                           const ReportOptions& options,
                                                           const FilterOptions& filters,
                                                           std::string author,
                                                           const std::string& header) {
  std::unique_ptr<ReportWriter> writer(new ReportWriter);
  writer->paths_ = paths;
  writer->options_ = options;
  writer->filters_ = filters;
  writer->author_ = std::move(author);
  const auto open = [](const std::string& path, std::optional<TextOutput>& file) -> Status {
    if (path.empty()) return {};
    HMMJIT_ASSIGN(file, TextOutput::create(path));
    return {};
  };
  HMMJIT_TRY(open(paths.main, writer->main_));
  HMMJIT_TRY(open(paths.alignment, writer->alignment_));
  HMMJIT_TRY(open(paths.targets, writer->targets_));
  HMMJIT_TRY(open(paths.domains, writer->domains_));
  HMMJIT_TRY(open(paths.pfam, writer->pfam_));
  HMMJIT_TRY(open(paths.tsv, writer->tsv_));
  HMMJIT_TRY(open(paths.json, writer->json_));
  HMMJIT_TRY(open(paths.a3m, writer->a3m_));
  if (options.scan) writer->scan_.emplace(*options.scan, options.scan_memory);
  if (options.begins) HMMJIT_TRY(writer->write_main(header));
  return writer;
}

Status ReportWriter::write_main(const std::string& text) {
  if (!main_) return write_standard_output(text);
  main_->write(text);
  return main_->status();
}

// What the files get of one model, in pieces for several threads; those of one file follow each
// other. The result outlives the making of them, not the texts.
class ReportWriter::Texts final : public PreparedResult {
 public:
  Texts(const ReportWriter& writer, const ModelResult& result) : writer_(writer), result_(result) {
    const auto add = [&](const std::optional<TextOutput>& file, Make make) {
      if (file) pieces_.push_back({&*file, std::move(make), {}});
    };
    const bool tables = !writer.scan_;
    if (tables) {
      add(writer.targets_,
          [this](std::string& out) { append_target_table(out, result_.model, result_.hits); });
      add(writer.domains_,
          [this](std::string& out) { append_domain_table(out, result_.model, result_.hits); });
    }
    add(writer.pfam_, [this](std::string& out) { append_pfam_table(out, result_.hits); });
    add(writer.tsv_, [this](std::string& out) { append_tsv(out, result_); });
    add(writer.json_,
        [this](std::string& out) { append_json(out, result_, writer_.options_.alignments); });
    add(writer.a3m_, [this](std::string& out) {
      std::size_t left = writer_.options_.aligned_targets;
      append_a3m(out, result_.model, result_.hits, false, &left);
    });
    add(writer.alignment_, [this](std::string& out) {
      aligned_ = append_stockholm(out, result_.model, result_.hits,
                                  writer_.options_.text_width == 0 ? 0 : kAlignmentColumns,
                                  writer_.author_, writer_.options_.aligned_targets);
    });

    const TextOutput* const main = writer.main_ ? &*writer.main_ : nullptr;
    const auto add_to_main = [&](Make make) { pieces_.push_back({main, std::move(make), {}}); };
    const std::vector<Hit>& hits = result.hits.hits;
    std::size_t last = next_piece(hits, 0);
    divided_ = last < hits.size();
    if (!divided_) {
      add_to_main([this](std::string& out) {
        append_model_report(out, result_, writer_.options_, writer_.filters_, times());
      });
      return;
    }
    add_to_main([this](std::string& out) { append_report_head(out, result_, writer_.options_); });
    for (std::size_t first = 0; first < hits.size();
         first = std::exchange(last, next_piece(hits, last))) {
      add_to_main([this, first, last](std::string& out) {
        append_domain_annotation(out, result_.model, result_.hits, writer_.options_, first, last);
      });
    }
    add_to_main(
        [this](std::string& out) { append_report_tail(out, result_, writer_.filters_, times()); });
  }

  // What has little text is made at once.
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

  /// What `file` gets (null: standard output), one call of `write` for each piece.
  template <typename Write>
  Status write(const TextOutput* file, const Write& write) const {
    for (const Piece& piece : pieces_) {
      if (piece.file == file) HMMJIT_TRY(write(piece.text));
    }
    return {};
  }
  /// Rows of the alignment of all hits.
  std::size_t aligned() const { return aligned_; }

 private:
  using Make = std::function<void(std::string&)>;
  struct Piece {
    const TextOutput* file;
    Make make;
    std::string text;
  };
  // The hit after a piece that begins with hit `first`.
  static std::size_t next_piece(const std::vector<Hit>& hits, std::size_t first) {
    std::size_t domains = 0;
    while (first < hits.size() && domains < kDomainsOfPiece)
      domains += hits[first++].score.domains.size();
    return first;
  }
  ReportTimes times() const { return {result_.cpu_seconds, 0, result_.seconds}; }
  static void make_piece(Piece& piece) {
    piece.make(piece.text);
    piece.make = nullptr;
  }

  const ReportWriter& writer_;
  const ModelResult& result_;
  std::vector<Piece> pieces_;
  bool divided_ = false;
  std::size_t aligned_ = 0;
};

std::shared_ptr<PreparedResult> ReportWriter::prepare(const ModelResult& result) const {
  return std::make_shared<Texts>(*this, result);
}

Status ReportWriter::receive(const ModelResult& result) {
  if (result.stored != nullptr) {
    const HitLots lots = [&](const std::function<Status(const ModelResult&)>& use) {
      ModelResult lot = result;
      return result.stored->in_lots([&](std::vector<Hit>& hits) {
        lot.hits.hits.swap(hits);
        const Status used = use(lot);
        lot.hits.hits.swap(hits);
        return used;
      });
    };
    return receive_in_lots(result, lots, result.stored->memory() / 4);
  }
  const auto& texts = dynamic_cast<const Texts&>(*result.prepared);
  totals_.add(result);
  if (scan_ && !options_.scan_by_range) HMMJIT_TRY(scan_->add(result));
  write_headers(result);
  for (auto* file : {&targets_, &domains_, &pfam_, &tsv_, &json_, &a3m_, &alignment_}) {
    if (!*file) continue;
    const auto write = [&](const std::string& text) -> Status {
      (*file)->write(text);
      return (*file)->status();
    };
    HMMJIT_TRY(texts.write(&**file, write));
  }
  HMMJIT_TRY(texts.write(main_ ? &*main_ : nullptr,
                         [this](const std::string& text) { return write_main(text); }));
  return write_saved_alignment(texts.aligned());
}

void ReportWriter::write_headers(const ModelResult& first) {
  if (first.index != 0) return;
  std::string targets, domains, tsv;
  append_target_table_header(targets, first.model, first.hits);
  append_domain_table_header(domains, first.model, first.hits);
  append_tsv_header(tsv);
  if (targets_ && !scan_) targets_->write(targets);
  if (domains_ && !scan_) domains_->write(domains);
  if (tsv_) tsv_->write(tsv);
}

Status ReportWriter::write_saved_alignment(std::size_t rows) {
  if (!alignment_) return {};
  return write_main(
      rows == 0 ? "# No hits satisfy inclusion thresholds; no alignment saved\n"
                : "# Alignment of " + std::to_string(rows) +
                      " hits satisfying inclusion thresholds saved to: " + paths_.alignment + "\n");
}

Status ReportWriter::receive_scan(ScanTables& tables, bool only_with_hits) {
  const auto to = [](std::optional<TextOutput>& file) -> std::function<Status(std::string_view)> {
    if (!file) return {};
    return [&file = *file](std::string_view text) {
      file.write(text);
      return file.status();
    };
  };
  HMMJIT_ASSIGN(const bool begun,
                tables.write({to(targets_), to(domains_)}, scan_begun_, only_with_hits));
  scan_begun_ |= begun;
  return {};
}

Status ReportWriter::append(const QueryOutput& output) {
  totals_.add(output.totals);
  if (!append_begun_) {
    if (targets_) targets_->write(output.targets_header);
    if (domains_) domains_->write(output.domains_header);
    std::string tsv;
    append_tsv_header(tsv);
    if (tsv_) tsv_->write(tsv);
    append_begun_ = true;
  }
  const std::pair<std::optional<TextOutput>*, const std::string*> files[] = {
      {&targets_, &output.targets},    {&domains_, &output.domains},
      {&pfam_, &output.pfam},          {&tsv_, &output.tsv},
      {&json_, &output.json},          {&a3m_, &output.a3m},
      {&alignment_, &output.alignment}};
  for (const auto& [file, text] : files) {
    if (!*file) continue;
    (*file)->write(*text);
    HMMJIT_TRY((*file)->status());
  }
  return write_main(output.main);
}

Status ReportWriter::complete(const RunDescription& run, std::span<OutputFile* const> others,
                              OutputFile::Afterwards afterwards) {
  if (scan_ && !options_.scan_by_range) HMMJIT_TRY(receive_scan(*scan_, false));
  if (json_ && options_.ends) {
    std::string line;
    append_json_run(line, run, totals_);
    json_->write(line);
  }
  std::string trailer;
  append_table_trailer(trailer, run);
  for (auto* table : {&targets_, &domains_, &pfam_}) {
    if (*table && options_.ends) (*table)->write(trailer);
  }
  if (main_ && options_.ends) main_->write("[ok]\n");
  std::vector<OutputFile*> files(others.begin(), others.end());
  for (OutputFile* file : others) HMMJIT_TRY(file->flush());
  for (auto* file : {&targets_, &domains_, &pfam_, &tsv_, &json_, &a3m_, &alignment_, &main_}) {
    if (!*file) continue;
    HMMJIT_TRY((*file)->flush());  // ends compressed data
    files.push_back(&(*file)->file());
  }
  // Standard output is the last that can fail before names are given.
  if (!main_ && options_.ends) HMMJIT_TRY(complete_standard_output());
  return OutputFile::publish(files, afterwards);
}

}  // namespace hmmjit
