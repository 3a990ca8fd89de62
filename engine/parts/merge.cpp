#include "parts/merge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/memory.hpp"
#include "core/sorted.hpp"
#include "parts/part_writer.hpp"
#include "report/scan.hpp"
#include "search/stored_hits.hpp"

namespace hmmjit::parts {
namespace {

// Memory of the program, and of each part: its table and one block of each kind, packed and
// unpacked.
constexpr std::uint64_t kProgramBytes = std::uint64_t{24} << 20;
constexpr std::uint64_t kPartBytes = 4 * kBlockBytes;

// The models of one group with totals over all parts, and a k-way merge of the current model's
// hits.
class MergedModels final : public HitSource {
 public:
  MergedModels(const ModelGroup& group, const PartSettings& settings, std::uint64_t memory)
      : settings_(settings),
        memory_(memory),
        Z_(settings.thresholds.Z.value_or(static_cast<double>(settings.targets))) {
    for (const PartPtr& part : group.parts) cursors_.emplace_back(part);
    heads_.resize(cursors_.size());
  }

  Status seek(std::uint64_t model) {
    for (PartCursor& cursor : cursors_) HMMJIT_TRY(cursor.seek(model));
    return {};
  }

  /// Advances to the next model; false after the last. Fails if the parts hold different models.
  Result<bool> next_model() {
    bool any = false;
    for (std::size_t p = 0; p < cursors_.size(); ++p) {
      HMMJIT_ASSIGN(const bool more, cursors_[p].next_model(heads_[p]));
      const PartFile& part = cursors_[p].part();
      if (p > 0 && more != any) return part.damaged("models are missing");
      any = more;
      if (!more) continue;
      if (heads_[p].model != heads_[0].model || heads_[p].name != heads_[0].name ||
          heads_[p].index != heads_[0].index)
        return fail(ErrorCode::kInput,
                    fmt::format("model {} {} is not the one of {} in {}", heads_[p].index + 1,
                                heads_[p].name, heads_[0].name, cursors_[0].part().path()),
                    part.path(), "search all parts with one model file");
    }
    if (!any) return false;
    sum_ = heads_[0];
    for (std::size_t p = 1; p < heads_.size(); ++p) sum_.add(heads_[p]);
    thresholds_ = sum_.thresholds(settings_.thresholds);
    domZ_ = settings_.thresholds.domZ.value_or(static_cast<double>(sum_.reported));
    return true;
  }
  const ModelHead& sum() const { return sum_; }

  /// The current model; its hits can be read until next_model().
  ModelResult result() {
    ModelResult result;
    result.stored = std::shared_ptr<HitSource>(std::shared_ptr<void>(), this);
    result.index = sum_.index;
    result.model = sum_;
    HitList& list = result.hits;
    static_cast<HitCounts&>(list) = sum_;
    list.Z = Z_;
    list.domZ = domZ_;
    list.Z_is_set = settings_.thresholds.Z.has_value();
    list.domZ_is_set = settings_.thresholds.domZ.has_value();
    list.sorted_by_score = !thresholds_.include_by_e_value();
    result.alignments = settings_.alignments;
    result.seconds = sum_.seconds;
    result.cpu_seconds = sum_.cpu_seconds;
    return result;
  }

  /// Bytes of the model's hits in memory, including their text.
  std::uint64_t bytes() const {
    return 6 * sum_.hit_bytes + sum_.reported * (sizeof(Hit) + 256) +
           sum_.domains * (sizeof(domain::Domain) + 512);
  }

  std::uint64_t output_memory() const override { return memory_; }

 private:
  // The hits of one part, with the flags of the whole search's thresholds.
  struct PartHits {
    MergedModels* models;
    PartCursor* cursor;
    Result<bool> next(Hit& hit) {
      HMMJIT_ASSIGN(const bool more, cursor->next_hit(hit));
      if (!more) return false;
      judge_target(models->thresholds_, models->Z_, hit);
      if (!hit.flags.reported) return cursor->part().damaged("a target that is not reported");
      return true;
    }
  };

  Status begin() override {
    std::vector<PartHits> sources;
    for (std::size_t p = 0; p < cursors_.size(); ++p) {
      HMMJIT_TRY(cursors_[p].begin_hits(heads_[p]));
      sources.push_back({this, &cursors_[p]});
    }
    merge_.emplace(std::move(sources), Before(stands_before));
    return {};
  }
  Result<bool> next(Hit& hit) override {
    HMMJIT_ASSIGN(Hit* const found, merge_->next());
    if (found == nullptr) return false;
    hit = std::move(*found);
    judge_domains(thresholds_, domZ_, hit);
    return true;
  }
  std::size_t hits_of_lot() const override {
    const std::uint64_t of_hit = bytes() / std::max<std::uint64_t>(1, sum_.reported);
    return std::clamp<std::uint64_t>(memory_ / std::max<std::uint64_t>(1, of_hit), 1,
                                     std::uint64_t{1} << 16);
  }

  const PartSettings& settings_;
  std::uint64_t memory_;
  double Z_, domZ_ = 0;
  std::vector<PartCursor> cursors_;
  std::vector<ModelHead> heads_;
  ModelHead sum_;
  ModelThresholds thresholds_;
  using Before = bool (*)(const Hit&, const Hit&);
  std::optional<KWayMerge<Hit, PartHits, Before>> merge_;
};

struct Memory {
  std::uint64_t model, lot;
};

Result<Memory> divide_memory(const PartSet& set, std::uint64_t bound) {
  HMMJIT_ASSIGN(const MemoryGrant grant, grant_memory(bound, 1));
  bound = grant.bound;
  std::uint64_t parts = 0;
  for (const ModelGroup& group : set.groups())
    parts = std::max<std::uint64_t>(parts, group.parts.size());
  const std::uint64_t needed = kProgramBytes + parts * kPartBytes;
  if (bound < needed)
    return fail(ErrorCode::kResources,
                fmt::format("{} parts at once need {} MB", parts, (needed >> 20) + 1), {},
                "raise --mem, or merge neighbouring parts into larger ones first "
                "(hmmjit merge --part-file)");
  // Measured with all eight outputs: a model with hits in memory takes 2.9 times
  // MergedModels::bytes().
  const std::uint64_t rest = bound - needed + kBlockBytes;
  return Memory{rest / 3, rest / 8};
}

// Moves the hits of the current model to memory.
Status read_hits(ModelResult& result) {
  result.hits.hits.reserve(result.hits.reported);
  HMMJIT_TRY(result.stored->for_each_lot([&](std::span<Hit> hits) -> Status {
    std::ranges::move(hits, std::back_inserter(result.hits.hits));
    return {};
  }));
  result.stored = nullptr;
  return {};
}

// Calls `use` with the models [first, last) of the search, in order.
template <typename Use>
Status for_each_merged_model(const PartSet& set, std::uint64_t first, std::uint64_t last,
                             std::uint64_t memory, const Use& use) {
  for (const ModelGroup& group : set.groups()) {
    const std::uint64_t from = std::max(first, group.first_model);
    const std::uint64_t to = std::min(last, group.last_model);
    if (from >= to) continue;
    MergedModels models(group, set.settings(), memory);
    HMMJIT_TRY(models.seek(from));
    for (std::uint64_t model = from; model < to; ++model) {
      HMMJIT_ASSIGN(const bool more, models.next_model());
      if (!more) return group.parts.front()->damaged("models are missing");
      HMMJIT_TRY(use(models));
    }
  }
  return {};
}

constexpr std::uint64_t kAll = ~std::uint64_t{0};

// The smallest target ranges that consist of whole parts in every group: [range][group] parts.
std::vector<std::vector<std::vector<PartPtr>>> target_ranges(const PartSet& set) {
  std::vector<std::vector<std::vector<PartPtr>>> ranges;
  std::vector<std::size_t> at(set.groups().size());
  while (at.front() < set.groups().front().parts.size()) {
    // Extend every group to the last target of any group.
    auto& range = ranges.emplace_back(set.groups().size());
    std::uint64_t end = 0;
    for (bool grown = true; grown;) {
      grown = false;
      for (std::size_t g = 0; g < set.groups().size(); ++g) {
        const auto& parts = set.groups()[g].parts;
        while (at[g] < parts.size() &&
               (range[g].empty() || range[g].back()->place().last_target < end)) {
          range[g].push_back(parts[at[g]++]);
          end = std::max(end, range[g].back()->place().last_target);
          grown = true;
        }
      }
    }
  }
  // Other groups may still have empty parts.
  for (std::size_t g = 0; g < set.groups().size(); ++g) {
    const auto& parts = set.groups()[g].parts;
    while (at[g] < parts.size()) ranges.back()[g].push_back(parts[at[g]++]);
  }
  return ranges;
}

// Text of each model, which only the part with a group's first target stores.
Result<std::vector<ModelInfo>> describe_models(const PartSet& set) {
  std::vector<ModelInfo> models;
  for (const ModelGroup& group : set.groups()) {
    PartCursor cursor(group.parts.front());
    ModelHead head;
    for (;;) {
      HMMJIT_ASSIGN(const bool more, cursor.next_model(head));
      if (!more) break;
      models.push_back({head.name, head.accession, head.description, head.M, {}});
    }
  }
  return models;
}

// Writes hmmscan's tables for the targets of a range.
Status write_scan(const PartSet& set, const std::vector<std::vector<PartPtr>>& range,
                  const std::vector<ModelInfo>& described, ReportWriter& writer,
                  bool only_with_hits, std::uint64_t memory) {
  ScanTables tables(set.settings().thresholds, memory);
  for (std::size_t g = 0; g < range.size(); ++g) {
    ModelGroup group = set.groups()[g];
    group.parts = range[g];
    MergedModels models(group, set.settings(), memory);
    for (;;) {
      HMMJIT_ASSIGN(const bool more, models.next_model());
      if (!more) break;
      ModelResult result = models.result();
      result.model = described.at(result.index);
      HMMJIT_TRY(for_each_lot(result, [&](const HitLot& lot) { return tables.add(lot); }));
    }
  }
  return writer.receive_scan(tables, only_with_hits);
}

}  // namespace

Status merge_reports(const PartSet& set, ReportWriter& writer, const MergeOptions& options) {
  HMMJIT_TRY(set.require_complete());
  HMMJIT_ASSIGN(const Memory memory, divide_memory(set, options.memory));
  const std::uint64_t count = set.groups().back().last_model;
  const auto bound = [&](std::uint64_t share) {
    return count / options.slice.of * share + count % options.slice.of * share / options.slice.of;
  };
  const std::uint64_t first = bound(options.slice.first - 1u), last = bound(options.slice.last);
  std::uint64_t done = 0;
  const Status models_written =
      for_each_merged_model(set, first, last, memory.lot, [&](MergedModels& models) -> Status {
        ModelResult result = models.result();
        if (models.bytes() <= memory.model) HMMJIT_TRY(read_hits(result));
        HMMJIT_TRY(writer.receive(result));
        if (options.on_progress) options.on_progress(++done, last - first);
        return {};
      });
  HMMJIT_TRY(models_written);
  if (set.settings().scan) {
    const auto ranges = target_ranges(set);
    const auto range_bound = [&](std::uint64_t share) {
      return ranges.size() * share / options.slice.of;
    };
    const std::size_t from = range_bound(options.slice.first - 1u);
    const std::size_t to = range_bound(options.slice.last);
    // The column names precede the first target with a hit, perhaps in an earlier slice.
    bool begun = false;
    for (std::size_t r = 0; r < from; ++r) {
      for (const auto& parts : ranges[r])
        for (const PartPtr& part : parts) begun |= part->hits() > 0;
    }
    writer.begin_scan(begun);
    HMMJIT_ASSIGN(const std::vector<ModelInfo> described, describe_models(set));
    for (std::size_t r = from; r < to; ++r)
      HMMJIT_TRY(write_scan(set, ranges[r], described, writer, r + 1 < ranges.size(), memory.lot));
  }
  if (options.slice.last == options.slice.of) {
    // The "run" record counts the models of all slices.
    RunTotals others;
    const Status others_counted =
        for_each_merged_model(set, 0, first, memory.lot, [&](MergedModels& models) {
          const ModelResult result = models.result();
          others.add(result);
          return for_each_lot(result, [&](const HitLot& lot) -> Status {
            others.add_domains(lot.hits);
            return {};
          });
        });
    HMMJIT_TRY(others_counted);
    writer.count(others);
  }
  return {};
}

Status merge_results(const PartSet& set, ResultSink& sink) {
  HMMJIT_TRY(set.require_complete());
  return for_each_merged_model(set, 0, kAll, kBlockBytes, [&](MergedModels& models) -> Status {
    ModelResult result = models.result();
    HMMJIT_TRY(read_hits(result));
    return sink.receive(result);
  });
}

Result<Digest> merge_into_part(const PartSet& set, const std::string& path,
                               const PartOrigin& origin, const MergeOptions& options) {
  HMMJIT_ASSIGN(const PartPlace place, set.joined_place());
  HMMJIT_ASSIGN(const Memory memory, divide_memory(set, options.memory));
  HMMJIT_ASSIGN(PartWriter writer, PartWriter::create(path, set.settings(), place));
  const Status models_added =
      for_each_merged_model(set, 0, kAll, memory.lot, [&](MergedModels& models) -> Status {
        HMMJIT_TRY(writer.add_model(models.sum(), models.result()));
        if (options.on_progress)
          options.on_progress(models.sum().index + 1 - place.first_model,
                              place.last_model - place.first_model);
        return {};
      });
  HMMJIT_TRY(models_added);
  return writer.finish(origin, place.last_model, place.models);
}

}  // namespace hmmjit::parts
