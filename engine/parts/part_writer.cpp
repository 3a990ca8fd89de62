#include "parts/part_writer.hpp"

#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <cstddef>
#include <new>
#include <tuple>
#include <utility>

#include "core/digest.hpp"
#include "core/output_file.hpp"
#include "search/reader_source.hpp"

namespace hmmjit::parts {
namespace {

struct FreeContext {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
};

}  // namespace

struct PartWriter::State {
  State(OutputFile output, bool alignments_kept, const PartPlace& place)
      : file(std::move(output)), alignments(alignments_kept) {
    prelude.place = place;
  }

  void write(std::string_view bytes) {
    file.write(bytes);
    written += bytes.size();
  }
  Status write_block(const std::string& raw, std::uint64_t first,
                     std::vector<BlockEntry>& entries) {
    constexpr int kLevel = 3;
    if (raw.size() > kLargestBlock)
      return fail(ErrorCode::kInput, "a target with more than a gigabyte of alignments",
                  file.path(), "leave out the target, or search with --noali");
    if (context == nullptr) context.reset(ZSTD_createCCtx());
    if (context == nullptr) throw std::bad_alloc();
    packed.resize(ZSTD_compressBound(raw.size()));
    const std::size_t size = ZSTD_compressCCtx(context.get(), packed.data(), packed.size(),
                                               raw.data(), raw.size(), kLevel);
    if (ZSTD_getErrorCode(size) == ZSTD_error_memory_allocation) throw std::bad_alloc();
    if (ZSTD_isError(size) != 0)
      return fail(ErrorCode::kInternal, std::string("cannot compress: ") + ZSTD_getErrorName(size));
    packed.resize(size);
    entries.push_back({written, static_cast<std::uint32_t>(size),
                       static_cast<std::uint32_t>(raw.size()),
                       checksum(packed.data(), packed.size()), first});
    write(packed);
    return {};
  }
  Status flush_hits() {
    if (hit_bytes.empty()) return {};
    HMMJIT_TRY(write_block(hit_bytes, first_hit, hit_blocks));
    hit_bytes.clear();
    first_hit = hits;
    return {};
  }

  OutputFile file;
  bool alignments;
  Prelude prelude{};
  std::string settings;
  std::uint64_t written = 0;
  DigestStream content;
  std::unique_ptr<ZSTD_CCtx, FreeContext> context;
  std::string packed;
  std::vector<BlockEntry> hit_blocks, head_blocks;
  std::string hit_bytes;  // in the current block
  std::uint64_t hits = 0, domains = 0, first_hit = 0;
  // Heads, which follow all hits in the file: their records and the ends of their blocks.
  std::string heads;
  std::vector<std::size_t> head_ends;
  std::vector<std::uint64_t> head_firsts;
  std::uint64_t next_model = 0;
};

Result<PartWriter> PartWriter::create(const std::string& path, const PartSettings& settings,
                                      const PartPlace& place) {
  HMMJIT_ASSIGN(OutputFile file, OutputFile::create(path));
  HMMJIT_TRY(file.require_start());
  auto state = make_hidden<State>(std::move(file), settings.alignments, place);
  State& s = *state;
  s.settings = settings.text();
  s.next_model = place.first_model;
  // Reserves space for the prelude, which is written last.
  s.write(std::string(sizeof(Prelude), '\0'));
  s.write(s.settings);
  s.content.update(s.settings);
  for (const std::uint64_t bound : {place.first_target, place.last_target, place.first_model})
    s.content.update(bytes_of(bound));
  return PartWriter(std::move(state));
}

Status PartWriter::add_model(ModelHead head, const ModelResult& result) {
  State& s = *state_;
  if (head.index != s.next_model++)
    return fail(ErrorCode::kInternal, "models of a part are out of order");
  head.block = s.hit_blocks.size();
  head.offset = s.hit_bytes.size();
  head.hit_bytes = head.domains = 0;
  DigestStream hits_digest;
  std::uint64_t count = 0;
  const Status added = for_each_lot(result, [&](const HitLot& lot) -> Status {
    for (const Hit& hit : lot.hits) {
      if (!hit.flags.reported) continue;
      const std::size_t before = s.hit_bytes.size();
      encode_hit(hit, s.alignments, s.hit_bytes);
      const std::size_t size = s.hit_bytes.size() - before;
      hits_digest.update(std::string_view(s.hit_bytes).substr(before));
      head.hit_bytes += size;
      head.domains += hit.score.domains.size();
      ++count;
      ++s.hits;
      if (s.hit_bytes.size() >= kBlockBytes) HMMJIT_TRY(s.flush_hits());
    }
    return {};
  });
  HMMJIT_TRY(added);
  if (count != head.reported)
    return fail(ErrorCode::kInternal, "hits of model " + head.name + " are missing");
  s.domains += head.domains;
  std::string content, rest;
  encode_head(head, s.prelude.place.describes_models(), content, rest);
  s.content.update(content);
  const Digest of_hits = hits_digest.value();
  s.content.update(bytes_of(of_hits));
  const std::size_t begin = s.head_ends.empty() ? 0 : s.head_ends.back();
  if (s.head_firsts.size() == s.head_ends.size()) s.head_firsts.push_back(head.index);
  s.heads += content;
  s.heads += rest;
  if (s.heads.size() - begin >= kBlockBytes) s.head_ends.push_back(s.heads.size());
  return s.file.flush();
}

Result<Digest> PartWriter::finish(const PartOrigin& origin, std::uint64_t last_model,
                                  std::uint64_t models) {
  State& s = *state_;
  HMMJIT_TRY(s.flush_hits());
  if (s.head_firsts.size() > s.head_ends.size()) s.head_ends.push_back(s.heads.size());
  std::size_t begin = 0;
  for (std::size_t block = 0; block < s.head_ends.size(); ++block) {
    HMMJIT_TRY(s.write_block(s.heads.substr(begin, s.head_ends[block] - begin),
                             s.head_firsts[block], s.head_blocks));
    begin = s.head_ends[block];
  }
  Prelude& p = s.prelude;
  std::copy(kPartMagic.begin(), kPartMagic.end(), p.magic);
  p.version = kPartVersion;
  p.bytes = sizeof p;
  p.content = s.content.value();
  p.search = digest_of(s.settings);
  p.place.last_model = last_model;
  p.place.models = models;
  p.hits = s.hits;
  p.domains = s.domains;
  p.settings_bytes = s.settings.size();
  p.settings_checksum = checksum(s.settings.data(), s.settings.size());
  const std::string about = encode_origin(origin);
  p.origin_offset = s.written;
  p.origin_bytes = about.size();
  p.origin_checksum = checksum(about.data(), about.size());
  s.write(about);
  p.table_offset = s.written;
  p.hit_blocks = static_cast<std::uint32_t>(s.hit_blocks.size());
  p.head_blocks = static_cast<std::uint32_t>(s.head_blocks.size());
  std::string table;
  for (const auto* entries : {&s.hit_blocks, &s.head_blocks}) {
    for (const BlockEntry& entry : *entries) put_bytes(table, entry);
  }
  p.table_checksum = checksum(table.data(), table.size());
  s.write(table);
  p.file_bytes = s.written;
  p.checksum = checksum(&p, offsetof(Prelude, checksum));
  HMMJIT_TRY(s.file.write_at(0, bytes_of(p)));
  HMMJIT_TRY(s.file.commit());
  return p.content;
}

Result<std::optional<Query>> NotedModels::next() {
  HMMJIT_ASSIGN(std::optional<Query> query, source_());
  if (query) {
    const Hmm& hmm = query->hmm;
    Note note{model_digest(hmm), std::nullopt};
    // The search itself reports a model without the requested cutoffs.
    if (const auto thresholds = thresholds_for(rules_, hmm); thresholds && thresholds->cutoffs)
      note.cutoff = {static_cast<float>(*thresholds->rules.target.score),
                     static_cast<float>(*thresholds->rules.domain.score)};
    const std::lock_guard lock(mutex_);
    notes_.push_back(note);
  }
  return query;
}

NotedModels::Note NotedModels::note(std::size_t n) const {
  const std::lock_guard lock(mutex_);
  return notes_.at(n);
}

Status PartSink::receive(const ModelResult& result) {
  const NotedModels::Note note = models_.note(result.index);
  ModelHead head;
  head.index = models_.first() + result.index;
  head.model = note.digest;
  head.cutoff = note.cutoff;
  static_cast<ModelInfo&>(head) = result.model;
  static_cast<HitCounts&>(head) = result.hits;
  head.cpu_seconds = result.cpu_seconds;
  head.seconds = result.seconds;
  ++received_;
  return writer_.add_model(std::move(head), result);
}

PartSettings settings_of(const SearchOptions& options, const DatabaseSummary& database) {
  PartSettings settings;
  settings.thresholds = options.thresholds;
  settings.filters = options.filters;
  settings.null2 = options.domain.null2;
  settings.seed = options.domain.seed;
  settings.alignments = options.keep_alignments;
  settings.alphabet = database.alphabet->type;
  settings.database_identity = database.identity;
  settings.targets = database.targets;
  settings.residues = database.residues;
  return settings;
}

Status place_targets(const TargetDatabase& database, PartPlace& place) {
  const Share& share = place.part;
  HMMJIT_ASSIGN(std::tie(place.first_target, place.last_target),
                database.targets_of_fraction(share.first - 1u, share.last, share.of));
  return {};
}

Result<SearchStatistics> search_part(Session& session, SearchOptions options,
                                     const ModelSource& models,
                                     std::shared_ptr<const TargetDatabase> database,
                                     const PartJob& job, SearchProgress& progress) {
  const PartPlace& place = job.place;
  options.whole_targets = job.settings.targets;
  HMMJIT_ASSIGN(PartWriter writer, PartWriter::create(job.path, job.settings, place));
  NotedModels noted(models, options.thresholds, place.first_model);
  PartSink sink(writer, noted);
  const std::unique_ptr<TargetSource> targets =
      open_target_range(std::move(database), place.first_target, place.last_target);
  HMMJIT_ASSIGN(SearchStatistics statistics,
                session.search(
                    options, [&noted] { return noted.next(); }, *targets, sink, progress));
  const std::uint64_t last = sink.last_model();
  HMMJIT_ASSIGN([[maybe_unused]] const Digest content,
                writer.finish(job.origin, last, place.model_part.of == 1 ? last : place.models));
  return statistics;
}

}  // namespace hmmjit::parts
