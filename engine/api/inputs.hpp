// Implementation structs of Model, Models and Targets.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/convert.hpp"
#include "build/built_model.hpp"
#include "hmmjit/models.hpp"
#include "hmmjit/search.hpp"
#include "hmmjit/targets.hpp"
#include "io/sequence_file.hpp"
#include "model/hmm.hpp"
#include "search/kept_targets.hpp"
#include "search/session.hpp"
#include "search/target_source.hpp"

namespace hmmjit::v0 {

struct ModelImpl {
  build::BuiltModel built;
  QueryNames query;  // names of the query sequence; empty: none
  ModelInfo info{};  // a view of both

  const Hmm& hmm() const { return built.hmm; }
};
Model make_model(build::BuiltModel built, QueryNames query = {});

struct ModelsImpl {
  std::string path;  // empty: in memory
  std::vector<Model> models;
};

/// Starts a pass over the models. The source keeps them alive.
Result<ModelSource> open_models(const std::shared_ptr<Models::Impl>& models);

struct TargetsImpl {
  std::string path;  // empty: in memory
  std::optional<SequenceFormat> format;
  const hmmjit::Alphabet* alphabet = nullptr;  // null: the models'
  std::vector<std::shared_ptr<TargetBlock>> blocks;
  std::size_t targets = 0;
  std::uint64_t residues = 0;
  // Set for kept targets; `path` is then only a name.
  std::shared_ptr<const ResidentTargets> source;
  std::shared_ptr<hmmjit::Session> session;
};

/// Starts a pass over the targets, for models of `alphabet`.
Result<std::unique_ptr<TargetSource>> open_targets(const std::shared_ptr<TargetsImpl>& targets,
                                                   const hmmjit::Alphabet& alphabet);
/// The same without targets that `options` exclude.
Result<std::unique_ptr<TargetSource>> open_targets(const std::shared_ptr<TargetsImpl>& targets,
                                                   const hmmjit::Alphabet& alphabet,
                                                   const hmmjit_search_options& options);

/// The session of kept targets; `own` for other targets and for searches on the CPU.
hmmjit::Session& session_of(const Targets& targets, const hmmjit_search_options& options,
                            hmmjit::Session& own);

const hmmjit::Alphabet& alphabet_of(Alphabet alphabet);
Alphabet to_alphabet(const hmmjit::Alphabet& alphabet);

}  // namespace hmmjit::v0
