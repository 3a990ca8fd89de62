#include "report/report_writer.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
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

Status write_standard_output(std::string_view text) {
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
  writer->options_ = options;
  writer->filters_ = filters;
  writer->author_ = std::move(author);
  writer->header_ = header;
  writer->joined_ = joined;
  const std::string* const of_kind[kKinds] = {&paths.targets,    &paths.domains, &paths.pfam,
                                              &paths.tsv,        &paths.target_tsv, &paths.json,
                                              &paths.a3m,        &paths.alignment, &paths.main};
  std::size_t of_earlier_search = 0;
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    Output& output = writer->outputs_[kind];
    output.path = *of_kind[kind];
    output.by_query = output.path.find("{query}") != output.path.npos;
    output.joined = joined != nullptr && ((kind == kTsv && joined->tsv) ||
                                          (kind == kTargetTsv && joined->target_tsv) ||
                                          (kind == kJson && joined->json));
    if (output.path.empty() || output.by_query) continue;
    if (output.joined && joined->begun) {
      output.file = std::move(joined->files.at(of_earlier_search++));
      output.begun = true;
    } else {
      HMMJIT_ASSIGN(output.file, TextOutput::create(output.path));
    }
    if (options.records.kept && (kind == kDomains || kind == kTsv || kind == kJson)) {
      HMMJIT_ASSIGN(output.held, SpoolFile::create());
    }
  }
  if (options.scan) writer->scan_.emplace(*options.scan, options.scan_memory);
  if (options.begins && !writer->outputs_[kMain].by_query)
    HMMJIT_TRY(writer->put(kMain, header));
  return writer;
}

Status ReportWriter::put(Kind kind, std::string_view text) {
  Output& output = outputs_[kind];
  if (output.held) return output.held->append(text);
  if (!output.file) return kind == kMain ? write_standard_output(text) : Status{};
  output.file->write(text);
  return output.file->status();
}

Status ReportWriter::begin_query(const std::string& name) {
  query_totals_ = {};
  bool any = false;
  for (Output& output : outputs_) {
    if (!output.by_query) continue;
    any = true;
    HMMJIT_ASSIGN(output.file, TextOutput::create(path_of_query(output.path, name)));
    output.begun = false;
  }
  if (any && !queries_.insert(name).second)
    return fail(ErrorCode::kInput, "two queries are called " + name, {},
                "give each query a name of its own, or leave {query} out of the names of outputs");
  return outputs_[kMain].by_query ? put(kMain, header_) : Status{};
}

Status ReportWriter::end_query() {
  std::vector<OutputFile*> files;
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    Output& output = outputs_[kind];
    if (!output.by_query) continue;
    HMMJIT_TRY(write_trailer(static_cast<Kind>(kind), run_, query_totals_));
    HMMJIT_TRY(output.file->flush());
    files.push_back(&output.file->file());
  }
  HMMJIT_TRY(OutputFile::publish(files));
  for (Output& output : outputs_) {
    if (output.by_query) output.file.reset();
  }
  return {};
}

// What the files get of one model, in pieces for several threads; those of one file follow each
// other. The result outlives the making of them, not the texts.
class ReportWriter::Texts final : public PreparedResult {
 public:
  Texts(const ReportWriter& writer, const ModelResult& result) : writer_(writer), result_(result) {
    const auto add = [&](Kind kind, Make make) {
      if (writer.wanted(kind)) pieces_.push_back({kind, std::move(make), {}});
    };
    const bool tables = !writer.scan_;
    if (tables) {
      add(kTargets,
          [this](std::string& out) { append_target_table(out, result_.model, result_.hits); });
      add(kDomains,
          [this](std::string& out) { append_domain_table(out, result_.model, result_.hits); });
    }
    add(kPfam, [this](std::string& out) { append_pfam_table(out, result_.hits); });
    add(kTsv, [this](std::string& out) {
      append_tsv(out, result_, writer_.options_.records);
    });
    add(kTargetTsv, [this](std::string& out) {
      append_target_tsv(out, result_, writer_.options_.records);
    });
    add(kJson,
        [this](std::string& out) {
          append_json(out, result_, writer_.options_.alignments, writer_.options_.records);
        });
    add(kA3m, [this](std::string& out) {
      std::size_t left = writer_.options_.aligned_targets;
      append_a3m(out, result_.model, result_.hits, false, &left);
    });
    add(kAlignment, [this](std::string& out) {
      aligned_ = append_stockholm(out, result_.model, result_.hits,
                                  writer_.options_.text_width == 0 ? 0 : kAlignmentColumns,
                                  writer_.author_, writer_.options_.aligned_targets);
    });

    const auto add_to_main = [&](Make make) { pieces_.push_back({kMain, std::move(make), {}}); };
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
        [this](std::string& out) { append_report_tail(out, result_, writer_.options_, writer_.filters_, times()); });
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

  Status write_to(ReportWriter& writer) const {
    for (const Piece& piece : pieces_) HMMJIT_TRY(writer.put(piece.kind, piece.text));
    return {};
  }
  /// Rows of the alignment of all hits.
  std::size_t aligned() const { return aligned_; }

 private:
  using Make = std::function<void(std::string&)>;
  struct Piece {
    Kind kind;
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
  HMMJIT_TRY(begin_query(result.model.name));
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
    HMMJIT_TRY(receive_in_lots(result, lots, result.stored->memory() / 4));
    return end_query();
  }
  const auto& texts = dynamic_cast<const Texts&>(*result.prepared);
  totals_.add(result);
  query_totals_.add(result);
  if (scan_ && !options_.scan_by_range) HMMJIT_TRY(scan_->add(result));
  HMMJIT_TRY(write_headers(result));
  HMMJIT_TRY(texts.write_to(*this));
  HMMJIT_TRY(write_saved_alignment(texts.aligned()));
  return end_query();
}

Status ReportWriter::write_headers(const std::string& targets, const std::string& domains) {
  std::string tsv, target_tsv;
  append_tsv_header(tsv, options_.records);
  append_target_tsv_header(target_tsv, options_.records);
  const std::pair<Kind, const std::string*> headers[] = {
      {kTargets, &targets}, {kDomains, &domains}, {kTsv, &tsv}, {kTargetTsv, &target_tsv}};
  for (const auto& [kind, text] : headers) {
    if (!std::exchange(outputs_[kind].begun, true) && wanted(kind)) HMMJIT_TRY(put(kind, *text));
  }
  return {};
}

Status ReportWriter::write_headers(const ModelResult& first) {
  // A writer of a later slice of the models writes none.
  const bool any_by_query = std::ranges::any_of(outputs_, &Output::by_query);
  if (first.index != 0 && !any_by_query) return {};
  std::string targets, domains;
  if (!scan_) {
    append_target_table_header(targets, first.model, first.hits);
    append_domain_table_header(domains, first.model, first.hits);
  }
  return write_headers(targets, domains);
}

Status ReportWriter::write_saved_alignment(std::size_t rows) {
  const Output& alignment = outputs_[kAlignment];
  if (!alignment.file) return {};
  return put(kMain, rows == 0 ? "# No hits satisfy inclusion thresholds; no alignment saved\n"
                              : "# Alignment of " + std::to_string(rows) +
                                    " hits satisfying inclusion thresholds saved to: " +
                                    alignment.file->path() + "\n");
}

Status ReportWriter::receive_scan(ScanTables& tables, bool only_with_hits) {
  const auto to = [this](Kind kind) -> std::function<Status(std::string_view)> {
    if (!wanted(kind)) return {};
    return [this, kind](std::string_view text) { return put(kind, text); };
  };
  HMMJIT_ASSIGN(const bool begun,
                tables.write({to(kTargets), to(kDomains)}, scan_begun_, only_with_hits));
  scan_begun_ |= begun;
  return {};
}

Status ReportWriter::append(const QueryOutput& output) {
  totals_.add(output.totals);
  query_totals_.add(output.totals);
  HMMJIT_TRY(write_headers(output.targets_header, output.domains_header));
  const std::pair<Kind, const std::string*> texts[] = {
      {kTargets, &output.targets}, {kDomains, &output.domains},
      {kPfam, &output.pfam},       {kTsv, &output.tsv},
      {kTargetTsv, &output.target_tsv}, {kJson, &output.json},
      {kA3m, &output.a3m},         {kAlignment, &output.alignment},
      {kMain, &output.main}};
  for (const auto& [kind, text] : texts) {
    if (!text->empty()) HMMJIT_TRY(put(kind, *text));
  }
  return {};
}

Status ReportWriter::write_trailer(Kind kind, const RunDescription& run, const RunTotals& totals) {
  std::string text;
  if (kind == kJson) {
    append_json_run(text, run, totals);
  } else if (kind == kTargets || kind == kDomains || kind == kPfam) {
    append_table_trailer(text, run);
  } else if (kind == kMain) {
    text = "[ok]\n";
  }
  return put(kind, text);
}

Status ReportWriter::release(Kind kind) {
  Output& output = outputs_[kind];
  SpoolFile held = *std::exchange(output.held, std::nullopt);
  std::size_t domain = 0;
  const auto is_kept = [&] { return domain < kept_.size() && kept_[domain++]; };
  std::string text, line;
  return held.for_each([&](std::string_view bytes) -> Status {
    text.clear();
    for (const char c : bytes) {
      if (kind != kDomains) {  // a value to be replaced
        if (c != kKeptLater) {
          text += c;
        } else if (kind == kJson) {
          text += is_kept() ? "true" : "false";
        } else {
          text += is_kept() ? '1' : '0';
        }
        continue;
      }
      line += c;  // a line to be left out
      if (c != '\n') continue;
      if (line.starts_with('#') || is_kept()) text += line;
      line.clear();
    }
    return put(kind, text);
  });
}

Status ReportWriter::complete(const RunDescription& run, std::span<OutputFile* const> others,
                              OutputFile::Afterwards afterwards) {
  if (scan_ && !options_.scan_by_range) HMMJIT_TRY(receive_scan(*scan_, false));
  for (const Kind kind : {kDomains, kTsv, kJson}) {
    if (outputs_[kind].held) HMMJIT_TRY(release(kind));
  }
  std::vector<OutputFile*> files(others.begin(), others.end());
  for (OutputFile* file : others) HMMJIT_TRY(file->flush());
  if (joined_ != nullptr) joined_->files.clear();
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    Output& output = outputs_[kind];
    if (!output.file) continue;
    if (options_.ends) HMMJIT_TRY(write_trailer(static_cast<Kind>(kind), run, totals_));
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
  // Standard output is the last that can fail before names are given.
  if (outputs_[kMain].path.empty() && options_.ends) HMMJIT_TRY(complete_standard_output());
  return OutputFile::publish(files, afterwards);
}

}  // namespace hmmjit
