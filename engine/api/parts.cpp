// Parts of a search for host programs.
#include "hmmjit/parts.hpp"

#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "api/convert.hpp"
#include "api/handles.hpp"
#include "api/inputs.hpp"
#include "api/results.hpp"
#include "api/structs.hpp"
#include "parts/merge.hpp"
#include "parts/model_index.hpp"
#include "parts/part_targets.hpp"
#include "parts/part_writer.hpp"

namespace hmmjit::v0 {
namespace {

// The options that results depend on; parts store no others.
SearchOptions options_of(const parts::PartSettings& settings) {
  const auto copy = [](const hmmjit::Threshold& from, double& e_value, double& score) {
    e_value = from.e_value;
    score = from.score.value_or(kNone);
  };
  const hmmjit::Thresholds& rules = settings.thresholds;
  SearchOptions out;
  copy(rules.target, out.E, out.T);
  copy(rules.domain, out.domE, out.domT);
  copy(rules.include_target, out.incE, out.incT);
  copy(rules.include_domain, out.incdomE, out.incdomT);
  out.cutoffs = static_cast<std::int32_t>(rules.cutoffs);
  out.Z = rules.Z.value_or(0);
  out.domZ = rules.domZ.value_or(0);
  out.F1 = settings.filters.F1;
  out.F2 = settings.filters.F2;
  out.F3 = settings.filters.F3;
  out.bias_filter = settings.filters.bias;
  out.null2 = settings.null2;
  out.seed = settings.seed;
  out.keep_alignments = settings.alignments;
  return out;
}

PartInfo describe(const parts::PartFile& part) {
  const parts::PartPlace& place = part.place();
  PartInfo info{};
  info.size = sizeof(hmmjit_part_info);
  info.part = place.part.first;
  info.last_part = place.part.last;
  info.parts = place.part.of;
  info.model_part = place.model_part.first;
  info.last_model_part = place.model_part.last;
  info.model_parts = place.model_part.of;
  info.first_target = place.first_target;
  info.last_target = place.last_target;
  info.first_model = place.first_model;
  info.last_model = place.last_model;
  info.targets_reported = part.hits();
  info.domains = part.domains();
  part.content().hex().copy(info.content, sizeof info.content - 1);
  info.options = options_of(part.settings());
  info.settings = part.settings_text();
  return info;
}

PartInfo describe(const std::string& file) { return describe(*value(parts::PartFile::open(file))); }

class PartSearch final : public SearchHook {
 public:
  PartSearch(const Models& models, const std::string& database, const PartShare& share,
             std::string output)
      : database_(value(TargetDatabase::open(database, DatabaseAccess::kRead))),
        output_(std::move(output)) {
    place_.part = {share.part, share.part, share.parts};
    place_.model_part = {share.model_part, share.model_part, share.model_parts};
    if (share.model_parts > 1) place_models(models);
    origin_.program = "libhmmjit " HMMJIT_VERSION;
    origin_.model_file = models.impl()->path;
    origin_.target_file = database;
  }

  void begin(hmmjit::SearchOptions& options, const hmmjit::Alphabet& alphabet,
             ModelSource source) override {
    const DatabaseSummary& summary = database_->summary();
    if (summary.alphabet->type != alphabet.type)
      throw Error(ErrorCode::kInput, "the database has another alphabet than the models",
                  database_->name(), "search the models and targets of one alphabet");
    parts::PartSettings settings;
    settings.thresholds = options.thresholds;
    settings.filters = options.filters;
    settings.null2 = options.domain.null2;
    settings.seed = options.domain.seed;
    settings.alignments = options.keep_alignments;
    settings.alphabet = alphabet.type;
    settings.database_identity = summary.identity;
    settings.targets = summary.targets;
    settings.residues = summary.residues;
    options.whole_targets = summary.targets;
    check(parts::place_targets(*database_, place_));
    noted_.emplace(share_of(std::move(source)), options.thresholds, place_.first_model);
    writer_.emplace(value(parts::PartWriter::create(output_, settings, place_)));
    sink_.emplace(*writer_, *noted_);
  }
  ModelSource models() override {
    return [this] { return noted_->next(); };
  }
  std::shared_ptr<TargetSource> targets() override { return parts::open_range(database_, place_); }
  ResultSink& sink() override { return *sink_; }
  void finish() {
    const std::uint64_t last = sink_->last_model();
    value(writer_->finish(origin_, last, place_.model_part.of > 1 ? place_.models : last));
  }

 private:
  // Determines the models of the share and opens their file.
  void place_models(const Models& models) {
    parts::ModelIndex index;
    const auto& all = models.impl();
    if (all->path.empty()) {
      std::uint64_t positions = 0;
      for (const Model& model : all->models) {
        index.positions.push_back(positions);
        positions += static_cast<std::uint64_t>(model.info().length);
      }
      index.positions.push_back(positions);
      place_.models = all->models.size();
    } else {
      index = value(parts::read_model_index(all->path));
      place_.models = index.models();
    }
    std::tie(place_.first_model, place_.last_model) = index.models_of(place_.model_part);
    if (!all->path.empty() && place_.first_model < place_.last_model)
      reader_ =
          value(parts::open_models_of(all->path, index, place_.first_model, place_.last_model));
  }

  // The source of the models of the share.
  ModelSource share_of(ModelSource all) {
    if (place_.model_part.of == 1) return all;
    return [this, all = std::move(all),
            next = std::uint64_t{0}]() mutable -> Result<std::optional<hmmjit::Query>> {
      if (reader_) return reader_->next();
      if (place_.first_model == place_.last_model) return std::nullopt;
      for (; next < place_.first_model; ++next) HMMJIT_TRY(all());
      if (next++ >= place_.last_model) return std::nullopt;
      return all();
    };
  }

  std::shared_ptr<const TargetDatabase> database_;
  std::string output_;
  parts::PartPlace place_;
  std::optional<HmmReader> reader_;  // of a share of the models of a file
  parts::PartOrigin origin_;
  std::optional<parts::NotedModels> noted_;
  std::optional<parts::PartWriter> writer_;
  std::optional<parts::PartSink> sink_;
};

class MergedResults final : public ResultSink {
 public:
  MergedResults(const SearchCallbacks& callbacks, HostCalls& host, SearchResults& out)
      : callbacks_(callbacks), host_(host), out_(out) {}
  Status receive(const hmmjit::ModelResult& given) override {
    if (callbacks_.cancellation && callbacks_.cancellation->cancelled())
      return fail(hmmjit::ErrorCode::kInterrupted, "the merge was cancelled");
    SearchStatistics& statistics = out_.statistics;
    ++statistics.models;
    statistics.targets = given.hits.counters.targets;
    statistics.residues = given.hits.counters.residues;
    statistics.hits_reported += given.hits.reported;
    for (const hmmjit::Hit& hit : given.hits.hits)
      statistics.domains_reported += static_cast<std::uint64_t>(hit.reported_domains);
    return deliver(make_result(given), callbacks_, host_, out_.models);
  }

 private:
  const SearchCallbacks& callbacks_;
  HostCalls& host_;
  SearchResults& out_;
};

parts::PartSet open_set(const std::vector<std::string>& files) {
  if (files.empty()) throw Error(ErrorCode::kUsage, "no part is given");
  return value(parts::PartSet::open(files));
}

}  // namespace

PartInfo search_part(const Models& models, const std::string& database, const PartShare& share,
                     const std::string& output, const hmmjit_search_options& options,
                     const SearchCallbacks& callbacks) {
  HostCalls host;
  return guarded(host, [&] {
    if (share.part < 1 || share.part > share.parts || share.model_part < 1 ||
        share.model_part > share.model_parts)
      throw Error(ErrorCode::kUsage, "there is no such part", {}, "parts are numbered from 1");
    if (options.seed == 0)
      throw Error(ErrorCode::kUsage, "random numbers would depend on the part", "seed",
                  "give a seed other than 0");
    if (!text_of(options.first_target).empty() || options.target_count != -1)
      throw Error(ErrorCode::kUsage, "a part is of the whole database",
                  "first_target, target_count");
    for (const Model& model : models.impl()->models) {
      if (!model.impl()->query.name.empty())
        throw Error(ErrorCode::kUsage, "a part is of models, not of sequences as queries",
                    "model " + model.impl()->hmm().name,
                    "take the model without its query, or search without parts");
    }
    PartSearch hook(models, database, share, output);
    search_with(hook, models, Targets::from_file(database), options, callbacks, host);
    hook.finish();
    return describe(output);
  });
}

SearchResults merge_parts(const std::vector<std::string>& files, const SearchCallbacks& callbacks) {
  HostCalls host;
  return guarded(host, [&] {
    const parts::PartSet set = open_set(files);
    SearchResults out;
    out.options = options_of(set.settings());
    MergedResults sink(callbacks, host, out);
    const Status status = parts::merge_results(set, sink);
    if (host.failed()) throw HostFailed{};
    check(status);
    return out;
  });
}

PartInfo join_parts(const std::vector<std::string>& files, const std::string& output) {
  return guarded([&] {
    const parts::PartSet set = open_set(files);
    parts::PartOrigin origin = set.first().origin();
    origin.program = "libhmmjit " HMMJIT_VERSION;
    value(parts::merge_into_part(set, output, origin, {}));
    return describe(output);
  });
}

std::string missing_parts(const std::vector<std::string>& files) {
  return guarded([&] { return parts::missing_array(open_set(files).missing()); });
}

PartInfo part_info(const std::string& file) {
  return guarded([&] { return describe(file); });
}

PartInfo verify_part(const std::string& file) {
  return guarded([&] {
    const parts::PartPtr part = value(parts::PartFile::open(file));
    check(part->verify());
    return describe(*part);
  });
}

}  // namespace hmmjit::v0
