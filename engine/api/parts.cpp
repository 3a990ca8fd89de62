// Parts of a search for host programs.
#include "hmmjit/parts.hpp"

#include <memory>
#include <optional>
#include <tuple>

#include "api/convert.hpp"
#include "api/handles.hpp"
#include "api/inputs.hpp"
#include "api/results.hpp"
#include "api/structs.hpp"
#include "parts/merge.hpp"
#include "parts/model_index.hpp"
#include "parts/part_writer.hpp"

namespace hmmjit::v0 {
namespace {

// The options that determine results; parts store no others.
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

// Determines the models of a share and returns where each model begins.
parts::ModelIndex place_models(const Models& models, parts::PartPlace& place) {
  parts::ModelIndex index;
  const auto& all = models.impl();
  if (all->path.empty()) {
    std::uint64_t positions = 0;
    for (const Model& model : all->models) {
      index.positions.push_back(positions);
      positions += static_cast<std::uint64_t>(model.info().length);
    }
    index.positions.push_back(positions);
    place.models = all->models.size();
  } else {
    index = value(parts::read_model_index(all->path));
    place.models = index.models();
  }
  std::tie(place.first_model, place.last_model) = index.models_of(place.model_part);
  return index;
}

// The models of a share. `all`: the models of the whole search; `path`: their file; empty: in
// memory.
ModelSource open_share(const ModelSource& all, const std::string& path,
                       const parts::ModelIndex& index, const parts::PartPlace& place) {
  if (place.first_model == place.last_model)
    return []() -> Result<std::optional<hmmjit::Query>> { return std::nullopt; };
  if (!path.empty()) {
    const auto reader = std::make_shared<HmmReader>(
        value(parts::open_models_of(path, index, place.first_model, place.last_model)));
    return [reader]() -> Result<std::optional<hmmjit::Query>> { return reader->next(); };
  }
  return [all, first = place.first_model, last = place.last_model,
          next = std::uint64_t{0}]() mutable -> Result<std::optional<hmmjit::Query>> {
    for (; next < first; ++next) HMMJIT_TRY(all());
    if (next++ >= last) return std::nullopt;
    return all();
  };
}

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
    if (share.model_parts > 1 && options.missing_cutoffs == HMMJIT_MISSING_SKIP)
      throw Error(ErrorCode::kUsage, "a share of the models counts those without cutoffs, too",
                  "missing_cutoffs", "leave these models out, or divide only the targets");
    for (const Model& model : models.impl()->models) {
      if (!model.impl()->query.name.empty())
        throw Error(ErrorCode::kUsage, "a part is of models, not of sequences as queries",
                    "model " + model.impl()->hmm().name,
                    "take the model without its query, or search without parts");
    }
    const std::shared_ptr<const TargetDatabase> targets =
        value(TargetDatabase::open(database, DatabaseAccess::kRead));
    const std::string& path = models.impl()->path;
    std::vector<NamedFile> inputs = {{"target database", database}};
    if (!path.empty()) parts::add_profile_files(inputs, "profile file", path);
    check_output(output, inputs);
    parts::PartJob job{.path = output, .settings = {}, .place = {}, .origin = {}};
    job.place.part = {share.part, share.part, share.parts};
    job.place.model_part = {share.model_part, share.model_part, share.model_parts};
    job.origin.program = "libhmmjit " HMMJIT_VERSION;
    job.origin.model_file = path;
    job.origin.target_file = database;
    parts::ModelIndex index;
    const bool all = share.model_parts == 1;
    if (!all) index = place_models(models, job.place);
    hmmjit::Session session;
    run_search(session, {}, models, Targets::from_file(database), options, callbacks, host, true,
               [&](const hmmjit::SearchOptions& internal, const hmmjit::Alphabet& alphabet,
                   const ModelSource& source, SearchProgress& progress) {
                 if (!same_codes(*targets->summary().alphabet, alphabet))
                   throw Error(ErrorCode::kInput,
                               "the database has another alphabet than the models", targets->name(),
                               "search the models and targets of one alphabet");
                 job.settings = parts::settings_of(internal, targets->summary());
                 check(parts::place_targets(*targets, job.place));
                 return parts::search_part(
                     session, internal, all ? source : open_share(source, path, index, job.place),
                     targets, job, progress);
               });
    return describe(output);
  });
}

SearchResults merge_parts(const std::vector<std::string>& files, const SearchCallbacks& callbacks) {
  HostCalls host;
  return guarded(host, [&] {
    const parts::PartSet set = open_set(files);
    SearchResults out;
    out.options = options_of(set.settings());
    FunctionSink sink([&](const hmmjit::ModelResult& given) -> Status {
      if (callbacks.cancellation && callbacks.cancellation->cancelled())
        return fail(hmmjit::ErrorCode::kInterrupted, "the merge was cancelled");
      SearchStatistics& statistics = out.statistics;
      ++statistics.models;
      statistics.targets = given.hits.counters.targets;
      statistics.residues = given.hits.counters.residues;
      statistics.hits_reported += given.hits.reported;
      for (const hmmjit::Hit& hit : given.hits.hits)
        statistics.domains_reported += static_cast<std::uint64_t>(hit.reported_domains);
      return deliver(make_result(given), callbacks, host, out.models);
    });
    const Status status = parts::merge_results(set, sink);
    if (host.failed()) throw HostFailed{};
    check(status);
    return out;
  });
}

PartInfo join_parts(const std::vector<std::string>& files, const std::string& output) {
  return guarded([&] {
    std::vector<NamedFile> inputs;
    for (const std::string& file : files) inputs.push_back({"part", file});
    check_output(output, inputs);
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
