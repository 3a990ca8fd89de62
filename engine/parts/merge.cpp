#include "parts/merge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "core/memory.hpp"
#include "parts/part_writer.hpp"
#include "report/scan.hpp"

namespace hmmjit::parts {
namespace {

// What every process holds, and of a part its table and one block of either kind, packed and not.
constexpr std::uint64_t kProgramBytes = std::uint64_t{24} << 20;
constexpr std::uint64_t kPartBytes = 4 * kBlockBytes;

// The models of one group, each with the sums of all parts, and its hits in their final order.
class MergedModels {
  // The first of all hits is on top of a heap of parts.
  struct Later {
    const std::vector<Hit>& next;
    bool operator()(std::size_t a, std::size_t b) const { return stands_before(next[b], next[a]); }
  };

 public:
  MergedModels(const ModelGroup& group, const PartSettings& settings)
      : settings_(settings),
        Z_(settings.thresholds.Z.value_or(static_cast<double>(settings.targets))) {
    for (const PartPtr& part : group.parts) cursors_.emplace_back(part);
    heads_.resize(cursors_.size());
    next_.resize(cursors_.size());
  }

  Status seek(std::uint64_t model) {
    for (PartCursor& cursor : cursors_) HMMJIT_TRY(cursor.seek(model));
    return {};
  }

  /// The next model; false after the last. Fails where parts hold different models.
  Result<bool> next() {
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

  /// The model without its hits.
  ModelResult result() const {
    ModelResult result;
    result.index = sum_.index;
    result.model = {sum_.name, sum_.accession, sum_.description, sum_.M, sum_.consensus};
    HitList& list = result.hits;
    list.Z = Z_;
    list.domZ = domZ_;
    list.Z_is_set = settings_.thresholds.Z.has_value();
    list.domZ_is_set = settings_.thresholds.domZ.has_value();
    list.sorted_by_score = !thresholds_.include_by_e_value();
    list.candidates = sum_.candidates;
    list.reported = sum_.reported;
    list.included = sum_.included;
    list.longest_name = sum_.longest_name;
    list.longest_accession = sum_.longest_accession;
    list.longest_shown = sum_.longest_shown;
    list.counters = sum_.counters;
    result.alignments = settings_.alignments;
    result.seconds = sum_.seconds;
    result.cpu_seconds = sum_.cpu_seconds;
    return result;
  }

  /// Bytes of the model's hits in memory, with the text made of them.
  std::uint64_t bytes() const {
    return 6 * sum_.hit_bytes + sum_.reported * (sizeof(Hit) + 256) +
           sum_.domains * (sizeof(domain::Domain) + 512);
  }

  /// Goes to the first hit of the model.
  Status begin_hits() {
    heap_.clear();
    for (std::size_t p = 0; p < cursors_.size(); ++p) {
      HMMJIT_TRY(cursors_[p].begin_hits(heads_[p]));
      HMMJIT_TRY(advance(p));
    }
    return {};
  }
  /// The next hit, judged for the whole search; false after the last.
  Result<bool> next_hit(Hit& hit) {
    if (heap_.empty()) return false;
    std::ranges::pop_heap(heap_, Later{next_});
    const std::size_t p = heap_.back();
    heap_.pop_back();
    hit = std::move(next_[p]);
    judge_domains(thresholds_, domZ_, hit);
    HMMJIT_TRY(advance(p));
    return true;
  }

 private:
  Status advance(std::size_t p) {
    HMMJIT_ASSIGN(const bool more, cursors_[p].next_hit(next_[p]));
    if (!more) return {};
    judge_target(thresholds_, Z_, next_[p]);
    if (!next_[p].flags.reported)
      return cursors_[p].part().damaged("a target that is not reported");
    heap_.push_back(p);
    std::ranges::push_heap(heap_, Later{next_});
    return {};
  }

  const PartSettings& settings_;
  double Z_, domZ_ = 0;
  std::vector<PartCursor> cursors_;
  std::vector<ModelHead> heads_;
  ModelHead sum_;
  ModelThresholds thresholds_;
  std::vector<Hit> next_;  // of every part
  std::vector<std::size_t> heap_;
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
  // A model whose hits are held at once took 2.9 times MergedModels::bytes() with all eight
  // outputs, whose text waits beside it.
  const std::uint64_t rest = bound - needed + kBlockBytes;
  return Memory{rest / 3, rest / 8};
}

Status read_hits(MergedModels& models, std::vector<Hit>& hits) {
  hits.reserve(models.sum().reported);
  HMMJIT_TRY(models.begin_hits());
  Hit hit;
  for (;;) {
    HMMJIT_ASSIGN(const bool more, models.next_hit(hit));
    if (!more) return {};
    hits.push_back(std::move(hit));
  }
}

// All of a model at once, or in lots where that would take too much memory.
Status write_model(MergedModels& models, ReportWriter& writer, const Memory& memory) {
  ModelResult result = models.result();
  Hit hit;
  if (models.bytes() <= memory.model || models.sum().reported == 0) {
    HMMJIT_TRY(read_hits(models, result.hits.hits));
    result.prepared = writer.prepare(result);
    for (std::size_t part = 0; part < result.prepared->parts(); ++part) result.prepared->make(part);
    return writer.receive(result);
  }
  const std::uint64_t of_hit = std::max<std::uint64_t>(1, models.bytes() / models.sum().reported);
  const std::uint64_t lot =
      std::clamp<std::uint64_t>(memory.lot / of_hit, 1, std::uint64_t{1} << 16);
  const ModelResult totals = result;
  const auto lots = [&](const std::function<Status(const ModelResult&)>& use) -> Status {
    HMMJIT_TRY(models.begin_hits());
    std::vector<Hit>& hits = result.hits.hits;
    for (bool more = true; more;) {
      hits.clear();
      while (hits.size() < lot) {
        HMMJIT_ASSIGN(more, models.next_hit(hit));
        if (!more) break;
        hits.push_back(std::move(hit));
      }
      if (!hits.empty()) HMMJIT_TRY(use(result));
    }
    return {};
  };
  return writer.receive_in_lots(totals, lots, memory.lot);
}

// Adds what the "run" record counts of models [first, last).
Status count_models(const PartSet& set, std::uint64_t first, std::uint64_t last,
                    RunTotals& totals) {
  for (const ModelGroup& group : set.groups()) {
    const std::uint64_t from = std::max(first, group.first_model);
    const std::uint64_t to = std::min(last, group.last_model);
    if (from >= to) continue;
    MergedModels models(group, set.settings());
    HMMJIT_TRY(models.seek(from));
    Hit hit;
    for (std::uint64_t model = from; model < to; ++model) {
      HMMJIT_ASSIGN(const bool more, models.next());
      if (!more) break;
      totals.add(models.result());
      HMMJIT_TRY(models.begin_hits());
      for (;;) {
        HMMJIT_ASSIGN(const bool found, models.next_hit(hit));
        if (!found) break;
        totals.domains_reported += static_cast<std::uint64_t>(hit.reported_domains);
        totals.domains_included += static_cast<std::uint64_t>(hit.included_domains);
      }
    }
  }
  return {};
}

// Ranges of targets whose bounds are bounds of parts in every group: for each group, the parts.
std::vector<std::vector<std::vector<PartPtr>>> target_ranges(const PartSet& set) {
  std::vector<std::vector<std::vector<PartPtr>>> ranges;
  std::vector<std::size_t> at(set.groups().size());
  while (at.front() < set.groups().front().parts.size()) {
    // Each group is taken up to the furthest target that any has been taken to.
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
  // Empty parts may be left in later groups.
  for (std::size_t g = 0; g < set.groups().size(); ++g) {
    const auto& parts = set.groups()[g].parts;
    while (at[g] < parts.size()) ranges.back()[g].push_back(parts[at[g]++]);
  }
  return ranges;
}

// What is said once of each model: in the part of its group that begins with the first target.
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

// hmmscan's tables of the targets of a range.
Status write_scan(const PartSet& set, const std::vector<std::vector<PartPtr>>& range,
                  const std::vector<ModelInfo>& described, ReportWriter& writer,
                  bool only_with_hits, std::uint64_t memory) {
  ScanTables tables(set.settings().thresholds, memory);
  for (std::size_t g = 0; g < range.size(); ++g) {
    ModelGroup group = set.groups()[g];
    group.parts = range[g];
    MergedModels models(group, set.settings());
    Hit hit;
    for (;;) {
      HMMJIT_ASSIGN(const bool more, models.next());
      if (!more) break;
      ModelResult result = models.result();
      result.model = described.at(result.index);
      HMMJIT_TRY(models.begin_hits());
      for (;;) {
        HMMJIT_ASSIGN(const bool found, models.next_hit(hit));
        if (!found) break;
        HMMJIT_TRY(tables.add(result, hit));
      }
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
  for (const ModelGroup& group : set.groups()) {
    const std::uint64_t from = std::max(first, group.first_model);
    const std::uint64_t to = std::min(last, group.last_model);
    if (from >= to) continue;
    MergedModels models(group, set.settings());
    HMMJIT_TRY(models.seek(from));
    for (std::uint64_t model = from; model < to; ++model) {
      HMMJIT_ASSIGN(const bool more, models.next());
      if (!more) return group.parts.front()->damaged("models are missing");
      HMMJIT_TRY(write_model(models, writer, memory));
      if (options.on_progress) options.on_progress(model + 1 - first, last - first);
    }
  }
  if (set.settings().scan) {
    const auto ranges = target_ranges(set);
    const auto range_bound = [&](std::uint64_t share) {
      return ranges.size() * share / options.slice.of;
    };
    const std::size_t from = range_bound(options.slice.first - 1u);
    const std::size_t to = range_bound(options.slice.last);
    // Column names stand before the first target with a hit, which may be in an earlier slice, or
    // at the end of all.
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
    RunTotals others;
    HMMJIT_TRY(count_models(set, 0, first, others));
    writer.count(others);
  }
  return {};
}

Status merge_results(const PartSet& set, ResultSink& sink) {
  HMMJIT_TRY(set.require_complete());
  for (const ModelGroup& group : set.groups()) {
    MergedModels models(group, set.settings());
    for (;;) {
      HMMJIT_ASSIGN(const bool more, models.next());
      if (!more) break;
      ModelResult result = models.result();
      HMMJIT_TRY(read_hits(models, result.hits.hits));
      result.prepared = sink.prepare(result);
      for (std::size_t part = 0; result.prepared != nullptr && part < result.prepared->parts();
           ++part)
        result.prepared->make(part);
      HMMJIT_TRY(sink.receive(result));
    }
  }
  return {};
}

Result<Digest> merge_into_part(const PartSet& set, const std::string& path,
                               const PartOrigin& origin, const MergeOptions& options) {
  HMMJIT_ASSIGN(const PartPlace place, set.joined_place());
  HMMJIT_TRY(divide_memory(set, options.memory));
  HMMJIT_ASSIGN(PartWriter writer, PartWriter::create(path, set.settings(), place));
  for (const ModelGroup& group : set.groups()) {
    MergedModels models(group, set.settings());
    Hit hit;
    for (;;) {
      HMMJIT_ASSIGN(const bool more, models.next());
      if (!more) break;
      HMMJIT_TRY(models.begin_hits());
      const Status added = writer.add_model(models.sum(), [&]() -> Result<const Hit*> {
        HMMJIT_ASSIGN(const bool found, models.next_hit(hit));
        return found ? &hit : nullptr;
      });
      HMMJIT_TRY(added);
      if (options.on_progress)
        options.on_progress(models.sum().index + 1 - place.first_model,
                            place.last_model - place.first_model);
    }
  }
  return writer.finish(origin, place.last_model, place.models);
}

}  // namespace hmmjit::parts
