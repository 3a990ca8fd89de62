#include "report/report_writer.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "report/a3m.hpp"
#include "report/stockholm.hpp"

namespace hmmjit {
namespace {

// hmmsearch's alignments are cut into blocks of this width unless --notextw is given.
constexpr std::size_t kAlignmentColumns = 200;

Status write_standard_output(const std::string& text) {
  const char* data = text.data();
  std::size_t left = text.size();
  while (left > 0) {
    const ssize_t written = ::write(STDOUT_FILENO, data, left);
    if (written < 0) {
      if (errno == EINTR) continue;
      return fail(ErrorCode::kOutput, std::string("cannot write: ") + std::strerror(errno),
                  "standard output", "check where it is redirected to");
    }
    data += written;
    left -= static_cast<std::size_t>(written);
  }
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
  const auto open = [](const std::string& path, std::optional<OutputFile>& file) -> Status {
    if (path.empty()) return {};
    HMMJIT_ASSIGN(file, OutputFile::create(path));
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
  if (options.scan) writer->scan_.emplace(*options.scan);
  HMMJIT_TRY(writer->write_main(header));
  return writer;
}

Status ReportWriter::write_main(const std::string& text) {
  if (!main_) return write_standard_output(text);
  main_->write(text);
  return {};
}

// What each file gets of one model.
struct ReportWriter::Texts final : PreparedResult {
  std::string targets, domains, pfam, tsv, json, a3m, alignment, main;
  std::size_t bytes() const override {
    std::size_t sum = sizeof *this;
    for (const std::string* text :
         {&targets, &domains, &pfam, &tsv, &json, &a3m, &alignment, &main})
      sum += text->capacity();
    return sum;
  }
};

std::shared_ptr<const PreparedResult> ReportWriter::prepare(const ModelResult& result) const {
  const auto made = std::make_shared<Texts>();
  Texts& texts = *made;
  if (targets_ && !scan_) append_target_table(texts.targets, result.model, result.hits);
  if (domains_ && !scan_) append_domain_table(texts.domains, result.model, result.hits);
  if (pfam_) append_pfam_table(texts.pfam, result.hits);
  if (tsv_) append_tsv(texts.tsv, result);
  if (json_) append_json(texts.json, result, options_.alignments);
  if (a3m_) append_a3m(texts.a3m, result.model, result.hits);
  std::size_t rows = 0;
  if (alignment_) {
    rows = append_stockholm(texts.alignment, result.model, result.hits,
                            options_.text_width == 0 ? 0 : kAlignmentColumns, author_);
  }
  append_model_report(texts.main, result, options_, filters_,
                      {result.cpu_seconds, 0, result.seconds});
  if (alignment_) {
    texts.main += rows == 0
                      ? "# No hits satisfy inclusion thresholds; no alignment saved\n"
                      : "# Alignment of " + std::to_string(rows) +
                            " hits satisfying inclusion thresholds saved to: " + paths_.alignment +
                            "\n";
  }
  return made;
}

Status ReportWriter::receive(const ModelResult& result) {
  const auto prepared = std::dynamic_pointer_cast<const Texts>(
      result.prepared != nullptr ? result.prepared : prepare(result));
  const Texts& texts = *prepared;
  totals_.add(result);
  if (scan_) scan_->add(result);
  if (!headers_written_) {
    std::string targets, domains, tsv;
    append_target_table_header(targets, result.model, result.hits);
    append_domain_table_header(domains, result.model, result.hits);
    append_tsv_header(tsv);
    if (targets_ && !scan_) targets_->write(targets);
    if (domains_ && !scan_) domains_->write(domains);
    if (tsv_) tsv_->write(tsv);
    headers_written_ = true;
  }
  const auto write = [](std::optional<OutputFile>& file, const std::string& text) {
    if (file) file->write(text);
  };
  write(targets_, texts.targets);
  write(domains_, texts.domains);
  write(pfam_, texts.pfam);
  write(tsv_, texts.tsv);
  write(json_, texts.json);
  write(a3m_, texts.a3m);
  write(alignment_, texts.alignment);
  return write_main(texts.main);
}

Status ReportWriter::complete(const RunDescription& run) {
  if (scan_) {
    std::string targets, domains;
    scan_->append(targets_ ? &targets : nullptr, domains_ ? &domains : nullptr);
    if (targets_) targets_->write(targets);
    if (domains_) domains_->write(domains);
  }
  if (json_) {
    std::string line;
    append_json_run(line, run, totals_);
    json_->write(line);
  }
  std::string trailer;
  append_table_trailer(trailer, run);
  for (auto* table : {&targets_, &domains_, &pfam_}) {
    if (*table) (*table)->write(trailer);
  }
  const auto files = {&targets_, &domains_, &pfam_, &tsv_, &json_, &a3m_, &alignment_, &main_};
  // Every byte is on disk before the first file takes its name.
  for (auto* file : files) {
    if (!*file) continue;
    if (file == &main_) main_->write("[ok]\n");
    HMMJIT_TRY((*file)->flush());
  }
  for (auto* file : files) {
    if (*file) HMMJIT_TRY((*file)->commit());
  }
  if (!main_) return write_standard_output("[ok]\n");
  return {};
}

}  // namespace hmmjit
