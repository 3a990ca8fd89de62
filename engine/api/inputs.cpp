// Models and targets, from files and from memory.
#include "api/inputs.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "api/convert.hpp"
#include "api/structs.hpp"
#include "build/calibration.hpp"
#include "build/hmm_writer.hpp"
#include "io/hmm_file.hpp"
#include "io/sequence_parsing.hpp"
#include "io/target_database.hpp"
#include "model/residue_copies.hpp"
#include "search/reader_source.hpp"

namespace hmmjit::v0 {
namespace {

// Residues of a block in memory: as many as a search reads at a time.
constexpr std::size_t kBlockResidues = std::size_t{1} << 20;

Model model_of(Hmm hmm) {
  build::BuiltModel built;
  built.hmm = std::move(hmm);
  return make_model(std::move(built));
}

/// For models from files, of which readers calibrate only HMMER2's.
build::BuiltModel calibrated(build::BuiltModel built) {
  check(build::calibrate_if_needed(built.hmm));
  return built;
}

std::vector<Model> read_models(HmmReader reader, const std::string& name) {
  std::vector<Model> out;
  while (auto hmm = value(reader.next())) out.push_back(model_of(*std::move(hmm)));
  if (out.empty()) throw Error(ErrorCode::kInput, "no model in the file", name);
  return out;
}

void require_memory(bool in_memory, const char* what) {
  if (!in_memory) {
    throw Error(ErrorCode::kUsage, std::string("nothing can be added to ") + what + " of a file",
                {}, "load the file instead");
  }
}

std::optional<SequenceFormat> to_format(const std::string& name) {
  if (name.empty()) return std::nullopt;
  return value(parse_sequence_format(name, "format"));
}

/// Refuses texts that break lines of tables: blanks separate names, and a description ends the
/// line. `what`: "target" or "model".
void check_texts(const std::string& what, const Sequence& texts, const std::string& where) {
  const auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  const auto unfit = [&](char c) { return c == ' ' || control(c); };
  const auto refuse = [&](const std::string& why, const std::string& remedy) {
    throw Error(ErrorCode::kUsage, why, where, remedy);
  };
  if (texts.name.empty()) refuse("a " + what + " has no name", "give every " + what + " a name");
  if (std::ranges::any_of(texts.name, unfit))
    refuse("blank or control character in the name of a " + what,
           "put what follows the first word into the description");
  if (std::ranges::any_of(texts.accession, unfit))
    refuse("blank or control character in the accession of a " + what, "");
  if (std::ranges::any_of(texts.description, [&](char c) { return c != '\t' && control(c); }))
    refuse("control character in the description of a " + what, "a description is one line");
}

class MemoryTargets final : public TargetSource {
 public:
  explicit MemoryTargets(std::shared_ptr<TargetsImpl> targets) : targets_(std::move(targets)) {}

  Result<bool> next(TargetBlock& block, std::size_t residues) override {
    block.set_first_index(index_);
    bool any = false;
    while (at_ < targets_->blocks.size() && !block.full(residues)) {
      const TargetBlock& from = *targets_->blocks[at_];
      if (in_block_ == from.size()) {
        ++at_;
        in_block_ = 0;
        continue;
      }
      if (!any) block.reserve(std::min<std::size_t>(residues, from.residue_count()));
      const TargetView target = from[in_block_++];
      block.begin_target(target.name, target.accession, target.description);
      block.append(target.residues);
      block.end_target();
      ++index_;
      any = true;
    }
    return any;
  }
  Status rewind() override {
    at_ = in_block_ = 0;
    index_ = 0;
    return {};
  }
  bool rewindable() const override { return true; }

 private:
  std::shared_ptr<TargetsImpl> targets_;
  std::size_t at_ = 0, in_block_ = 0;
  std::uint64_t index_ = 0;
};

}  // namespace

const hmmjit::Alphabet& alphabet_of(Alphabet alphabet) {
  check_choice(static_cast<std::int32_t>(alphabet), HMMJIT_RNA, "alphabet");
  return alphabet == Alphabet::kDna   ? dna_alphabet()
         : alphabet == Alphabet::kRna ? rna_alphabet()
                                      : amino_alphabet();
}

Alphabet to_alphabet(const hmmjit::Alphabet& alphabet) {
  return alphabet.type == AlphabetType::kDna   ? Alphabet::kDna
         : alphabet.type == AlphabetType::kRna ? Alphabet::kRna
                                               : Alphabet::kAmino;
}

namespace {

ModelInfo info_of(const Model::Impl& model) {
  const Hmm& hmm = model.hmm();
  const auto text = [](const std::optional<std::string>& t) { return t ? t->c_str() : ""; };
  ModelInfo out{};
  out.size = sizeof out;
  out.name = hmm.name.c_str();
  out.accession = text(hmm.accession);
  out.description = text(hmm.description);
  out.consensus = hmm.consensus.c_str();
  out.length = hmm.M;
  out.alphabet = static_cast<std::int32_t>(to_alphabet(*hmm.alphabet));
  const auto cutoff = [](const std::optional<Cutoff>& c, double& sequence, double& domain) {
    sequence = c ? c->sequence : kNone;
    domain = c ? c->domain : kNone;
  };
  cutoff(hmm.ga, out.gathering, out.gathering_domain);
  cutoff(hmm.tc, out.trusted, out.trusted_domain);
  cutoff(hmm.nc, out.noise, out.noise_domain);
  out.query_name = model.query.name.c_str();
  out.query_accession = text(model.query.accession);
  out.query_description = text(model.query.description);
  out.match = hmm.match.data();
  out.insert = hmm.insert.data();
  out.transition = hmm.transition.data();
  const std::span composition(hmm.compo.data(), static_cast<std::size_t>(hmm.alphabet->K));
  if (std::ranges::any_of(composition, [](float p) { return p != 0; }))
    out.composition = composition.data();
  out.letters = hmm.alphabet->K;
  const Calibration& c = hmm.calibration;
  const bool calibrated = !hmm.needs_calibration && c.msv_lambda > 0;
  out.msv_mu = calibrated ? c.msv_mu : kNone;
  out.msv_lambda = calibrated ? c.msv_lambda : kNone;
  out.viterbi_mu = calibrated ? c.viterbi_mu : kNone;
  out.viterbi_lambda = calibrated ? c.viterbi_lambda : kNone;
  out.forward_tau = calibrated ? c.forward_tau : kNone;
  out.forward_lambda = calibrated ? c.forward_lambda : kNone;
  return out;
}

}  // namespace

Model make_model(build::BuiltModel built, QueryNames query) {
  auto impl = std::make_shared<Model::Impl>();
  impl->built = std::move(built);
  impl->query = std::move(query);
  impl->info = info_of(*impl);
  return Model(std::move(impl));
}

// ---- models ---------------------------------------------------------------------------------

const ModelInfo& Model::info() const { return impl_->info; }

Model Model::with(const ModelInfo& given) const {
  return guarded([&] {
    const ModelInfo& now = impl_->info;
    const ModelInfo i = read(&given, now);
    const auto optional = [](const char* text) {
      return text_of(text).empty() ? std::nullopt : std::optional<std::string>(text);
    };
    build::BuiltModel built = impl_->built;
    if (i.name != now.name || i.accession != now.accession || i.description != now.description) {
      built.hmm.name = text_of(i.name);
      built.hmm.accession = optional(i.accession);
      built.hmm.description = optional(i.description);
      check_texts("model",
                  {.name = built.hmm.name,
                   .accession = text_of(i.accession),
                   .description = text_of(i.description)},
                  "");
    }
    const QueryNames query{text_of(i.query_name), optional(i.query_accession),
                           optional(i.query_description)};
    if (!query.name.empty() &&
        (i.query_name != now.query_name || i.query_accession != now.query_accession ||
         i.query_description != now.query_description))
      check_texts("query",
                  {.name = query.name,
                   .accession = text_of(i.query_accession),
                   .description = text_of(i.query_description)},
                  "");
    const auto set = [](std::optional<Cutoff>& cutoff, double sequence, double domain) {
      cutoff.reset();
      if (std::isnan(sequence)) return;
      constexpr double kMost = std::numeric_limits<float>::max();
      if (!(std::abs(sequence) <= kMost && std::abs(domain) <= kMost))
        throw Error(ErrorCode::kUsage, "a cutoff is not a finite number");
      cutoff = {static_cast<float>(sequence), static_cast<float>(domain)};
    };
    set(built.hmm.ga, i.gathering, i.gathering_domain);
    set(built.hmm.tc, i.trusted, i.trusted_domain);
    set(built.hmm.nc, i.noise, i.noise_domain);
    return make_model(std::move(built), query);
  });
}

std::string Model::text() const {
  return guarded([&] {
    check(build::check_writable(impl_->built));
    std::string out;
    build::append_hmm_text(out, calibrated(impl_->built), "libhmmjit " HMMJIT_VERSION, {});
    return out;
  });
}
std::string Model::binary() const {
  return guarded([&] {
    std::string out;
    build::append_hmm_binary(out, calibrated(impl_->built));
    return out;
  });
}
Models::Models() : SharedHandle(guarded([] { return std::make_shared<Impl>(); })) {}

Models Models::from_file(std::string path) {
  return guarded([&] {
    if (path.empty()) throw Error(ErrorCode::kUsage, "a profile file has no name");
    Models out;
    out.impl_->path = std::move(path);
    return out;
  });
}

Models Models::load(const std::string& path) {
  return guarded([&] {
    Models out;
    out.impl_->models = read_models(value(HmmReader::open(path)), path);
    return out;
  });
}

Models Models::from_memory(std::string_view contents, const std::string& name) {
  return guarded([&] {
    Models out;
    auto source = value(open_memory_source(name, {contents.data(), contents.size()}));
    out.impl_->models = read_models(value(HmmReader::open(std::move(source))), name);
    return out;
  });
}

void Models::add(Model model) {
  guarded([&] {
    require_memory(impl_->path.empty(), "Models");
    impl_->models.push_back(std::move(model));
  });
}

std::size_t Models::size() const { return impl_->models.size(); }

Model Models::operator[](std::size_t index) const {
  return guarded([&] {
    if (index >= impl_->models.size()) {
      throw Error(ErrorCode::kUsage, "no model " + std::to_string(index) + " among " +
                                         std::to_string(impl_->models.size()));
    }
    return impl_->models[index];
  });
}

void Models::for_each(const std::function<bool(const Model&)>& visit) const {
  HostCalls host;
  guarded(host, [&] {
    const auto wanted = [&](const Model& model) {
      bool go_on = false;
      if (!host.run([&] { go_on = visit(model); })) throw HostFailed{};
      return go_on;
    };
    if (impl_->path.empty()) {
      const std::vector<Model> models = impl_->models;  // `visit` may add models
      for (const Model& model : models) {
        if (!wanted(model)) return;
      }
      return;
    }
    HmmReader reader = value(HmmReader::open(impl_->path));
    while (auto hmm = value(reader.next())) {
      if (!wanted(model_of(*std::move(hmm)))) return;
    }
  });
}

Result<ModelSource> open_models(const std::shared_ptr<Models::Impl>& models) {
  if (!models->path.empty()) {
    HMMJIT_ASSIGN(HmmReader opened, HmmReader::open(models->path));
    return [reader = std::make_shared<HmmReader>(std::move(opened))] { return reader->next(); };
  }
  return [models, next = std::size_t{0}]() mutable -> Result<std::optional<Query>> {
    if (next == models->models.size()) return std::nullopt;
    const Model::Impl& model = *models->models[next].impl();
    const Hmm& hmm = model.hmm();
    if (hmm.alphabet != models->models[0].impl()->hmm().alphabet) {
      return fail(hmmjit::ErrorCode::kInput, "models of several alphabets in one search",
                  "model " + hmm.name, "search them one alphabet at a time");
    }
    ++next;
    if (model.query.name.empty()) return hmm;
    return Query(hmm, model.query);
  };
}

// ---- targets --------------------------------------------------------------------------------

Targets::Targets(Alphabet alphabet)
    : SharedHandle(guarded([] { return std::make_shared<Impl>(); })) {
  impl_->alphabet = &alphabet_of(alphabet);
}

Targets Targets::from_file(std::string path, const std::string& format) {
  return guarded([&] {
    if (path.empty()) throw Error(ErrorCode::kUsage, "a sequence file has no name");
    Targets out;
    out.impl_->alphabet = nullptr;
    out.impl_->path = std::move(path);
    out.impl_->format = to_format(format);
    return out;
  });
}

namespace {

/// Copies the targets of a mapped database: the file may change or be removed.
TargetBlock copy_of(const TargetBlock& from, const hmmjit::Alphabet& alphabet) {
  TargetBlock out;
  out.reserve(from.residue_count());
  ResidueCopies copies;
  for (std::size_t i = 0; i < from.size(); ++i) {
    TargetView target = from[i];
    copies.clear();
    target.residues = value(copies.of(from, i, alphabet));
    out.begin_target(target.name, target.accession, target.description);
    out.append(target.residues);
    out.end_target();
  }
  return out;
}

/// `next` reads the next block.
template <typename Next>
void read_targets(Next&& next, Targets::Impl& out) {
  for (;;) {
    auto block = std::make_shared<TargetBlock>();
    if (!value(next(*block))) return;
    if (block->borrowed()) {
      block = std::make_shared<TargetBlock>(copy_of(*block, *out.alphabet));
    }
    block->finish();
    block->set_first_index(out.targets);
    out.targets += block->size();
    out.residues += block->residue_count();
    out.blocks.push_back(std::move(block));
  }
}

}  // namespace

Targets Targets::load(const std::string& path, Alphabet alphabet, const std::string& format) {
  return guarded([&] {
    Targets out(alphabet);
    const SequenceFormatOptions options{.alphabet = *out.impl_->alphabet,
                                        .format = to_format(format)};
    const auto source = value(open_target_file(path, options, DatabaseAccess::kRead));
    read_targets([&](TargetBlock& block) { return source->next(block, kBlockResidues); },
                 *out.impl_);
    return out;
  });
}

Targets Targets::from_memory(std::string_view contents, Alphabet alphabet,
                             const std::string& format, const std::string& name) {
  return guarded([&] {
    Targets out(alphabet);
    const SequenceFormatOptions options{.alphabet = *out.impl_->alphabet,
                                        .format = to_format(format)};
    if (is_target_database(contents)) {
      if (options.format) {
        throw Error(ErrorCode::kUsage, "these are the bytes of a target database, not " + format,
                    name, "assert no format of it");
      }
      auto database = value(TargetDatabase::from_bytes(name, contents));
      if (!same_codes(*database->summary().alphabet, *out.impl_->alphabet)) {
        throw Error(ErrorCode::kInput,
                    "the target database holds " + std::string(database->summary().alphabet->name) +
                        " sequences, not " + std::string(out.impl_->alphabet->name),
                    name, "give its alphabet");
      }
      DatabaseReader reader(std::move(database));
      read_targets([&](TargetBlock& block) { return reader.read_block(block, kBlockResidues); },
                   *out.impl_);
      return out;
    }
    auto source = value(open_memory_source(name, {contents.data(), contents.size()}));
    auto reader = value(SequenceReader::open(std::move(source), options));
    read_targets([&](TargetBlock& block) { return reader.read_block(block, kBlockResidues); },
                 *out.impl_);
    return out;
  });
}

Targets Targets::keep(Alphabet alphabet) const {
  return guarded([&] {
    if (impl_->source) return *this;
    Targets out(alphabet);
    Impl& kept = *out.impl_;
    const hmmjit::Alphabet& letters = *kept.alphabet;
    kept = *impl_;
    if (kept.path.empty()) {
      kept.source = value(load_targets(*value(open_targets(impl_, *kept.alphabet)), 0));
      kept.blocks.clear();
    } else {
      kept.alphabet = &letters;
      kept.source =
          value(keep_target_file(kept.path, {.alphabet = letters, .format = kept.format}, 0));
    }
    kept.targets = kept.residues = 0;
    const auto all = kept.source->open();
    for (TargetBlock block; value(all->next(block, kBlockResidues));) {
      kept.targets += block.size();
      kept.residues += block.residue_count();
    }
    kept.session = std::make_shared<hmmjit::Session>();
    return out;
  });
}

void Targets::add(const Sequence& sequence) {
  guarded([&] {
    require_memory(impl_->path.empty() && !impl_->source, "Targets");
    const std::string where =
        "target " + std::to_string(impl_->targets + 1) +
        (sequence.name.empty() ? "" : " (" + std::string(sequence.name) + ")");
    check_texts("target", sequence, where);
    const auto table = sequence_parsing::unaligned_table({.alphabet = *impl_->alphabet});
    std::vector<Residue> codes;
    codes.reserve(sequence.residues.size());
    for (const char c : sequence.residues) {
      const std::uint8_t code = table[static_cast<unsigned char>(c)];
      if (code == sequence_parsing::kIgnored) continue;
      if (code >= sequence_parsing::kIgnored)
        raise(sequence_parsing::illegal_character(where, {}, c, *impl_->alphabet).error());
      codes.push_back(code);
    }
    if (codes.size() > sequence_parsing::kLongestTarget)
      raise(sequence_parsing::too_long(where, sequence.name).error());
    if (impl_->blocks.empty() || impl_->blocks.back()->full(kBlockResidues)) {
      impl_->blocks.push_back(std::make_shared<TargetBlock>());
      impl_->blocks.back()->set_first_index(impl_->targets);
    }
    TargetBlock& block = *impl_->blocks.back();
    block.begin_target(sequence.name, sequence.accession, sequence.description);
    block.append(codes);
    block.end_target();
    ++impl_->targets;
    impl_->residues += codes.size();
  });
}

void Targets::add(const Targets& others) {
  guarded([&] {
    require_memory(impl_->path.empty() && !impl_->source, "Targets");
    if (others.impl_ == impl_)
      throw Error(ErrorCode::kUsage, "targets cannot be added to themselves");
    const auto source = value(open_targets(others.impl_, *impl_->alphabet));
    read_targets([&](TargetBlock& block) { return source->next(block, kBlockResidues); }, *impl_);
  });
}

void Targets::for_each(
    const std::function<bool(std::uint64_t index, const Sequence& target)>& visit,
    std::uint64_t first, Alphabet alphabet) const {
  HostCalls host;
  guarded(host, [&] {
    const hmmjit::Alphabet& letters =
        impl_->alphabet != nullptr ? *impl_->alphabet : alphabet_of(alphabet);
    std::string name, accession, description, residues;
    ResidueCopies copies;
    const auto visit_block = [&](const TargetBlock& block) {
      const std::uint64_t begin = block.first_index(), end = begin + block.size();
      for (std::uint64_t index = std::max(first, begin); index < end; ++index) {
        const std::size_t i = index - begin;
        copies.clear();
        residues.clear();
        for (const Residue code : value(copies.of(block, i, letters)))
          residues += letters.symbols[code];
        // Inside the loop: `visit` may add targets to the block.
        const TargetView target = block[i];
        name = target.name;
        accession = target.accession;
        description = target.description;
        bool go_on = false;
        const Sequence sequence{name, residues, accession, description};
        if (!host.run([&] { go_on = visit(index, sequence); })) throw HostFailed{};
        if (!go_on) return false;
      }
      return true;
    };
    if (impl_->path.empty() && !impl_->source) {
      const auto blocks = impl_->blocks;
      for (const auto& block : blocks) {
        if (!visit_block(*block)) return;
      }
      return;
    }
    const auto source = value(open_targets(impl_, letters));
    for (;;) {
      TargetBlock block;
      if (!value(source->next(block, kBlockResidues)) || !visit_block(block)) return;
    }
  });
}

std::size_t Targets::size() const { return impl_->targets; }
std::uint64_t Targets::residues() const { return impl_->residues; }
std::optional<Alphabet> Targets::alphabet() const {
  if (impl_->alphabet == nullptr) return std::nullopt;
  return to_alphabet(*impl_->alphabet);
}

Result<std::unique_ptr<TargetSource>> open_targets(const std::shared_ptr<TargetsImpl>& targets,
                                                   const hmmjit::Alphabet& alphabet) {
  if (!targets->path.empty() && !targets->source)
    return open_target_file(targets->path, {.alphabet = alphabet, .format = targets->format},
                            DatabaseAccess::kRead);
  if (!same_codes(*targets->alphabet, alphabet)) {
    return fail(hmmjit::ErrorCode::kInput,
                "models and targets have different alphabets: " + std::string(alphabet.name) +
                    " and " + std::string(targets->alphabet->name),
                {}, "give the targets the alphabet of the models");
  }
  if (targets->source) return targets->source->open();
  return std::make_unique<MemoryTargets>(targets);
}

Result<std::unique_ptr<TargetSource>> open_targets(const std::shared_ptr<TargetsImpl>& targets,
                                                   const hmmjit::Alphabet& alphabet,
                                                   const hmmjit_search_options& options) {
  auto source = open_targets(targets, alphabet);
  const std::string first = text_of(options.first_target);
  if (!source || (first.empty() && options.target_count == -1)) return source;
  std::optional<std::uint64_t> count;
  if (options.target_count >= 0) count = static_cast<std::uint64_t>(options.target_count);
  return restrict_targets(*std::move(source), alphabet, first, count);
}

hmmjit::Session& session_of(const Targets& targets, const hmmjit_search_options& options,
                            hmmjit::Session& own) {
  const auto& kept = targets.impl()->session;
  return kept != nullptr && options.device != HMMJIT_DEVICE_CPU ? *kept : own;
}

}  // namespace hmmjit::v0
