// Models and targets, from files and from memory.
#include "api/inputs.hpp"

#include "io/hmm_file.hpp"
#include "io/sequence_parsing.hpp"
#include "search/reader_source.hpp"

namespace hmmjit::v0 {
namespace {

// Residues of a block in memory: what a search reads at a time, too.
constexpr std::size_t kBlockResidues = std::size_t{1} << 20;

Model make_model(Hmm hmm) {
  auto impl = std::make_shared<Model::Impl>();
  impl->accession = hmm.accession.value_or("");
  impl->description = hmm.description.value_or("");
  impl->hmm = std::move(hmm);
  return Model(std::move(impl));
}

std::vector<Model> read_models(HmmReader reader, const std::string& name) {
  std::vector<Model> out;
  while (auto hmm = value(reader.next())) out.push_back(make_model(*std::move(hmm)));
  if (out.empty()) throw Error(ErrorCode::kInput, "no model in the file", name);
  return out;
}

std::optional<ScoreCutoff> to_cutoff(const std::optional<Cutoff>& cutoff) {
  if (!cutoff) return std::nullopt;
  return ScoreCutoff{cutoff->sequence, cutoff->domain};
}

void require_memory(bool in_memory, const char* what) {
  if (!in_memory) {
    throw Error(ErrorCode::kUsage, std::string("nothing can be added to ") + what + " of a file",
                {}, "load the file instead");
  }
}

std::optional<SequenceFormat> to_format(const std::string& name) {
  if (name.empty()) return std::nullopt;
  return value(parse_sequence_format(name));
}

class MemoryTargets final : public TargetSource {
 public:
  explicit MemoryTargets(std::shared_ptr<Targets::Impl> targets) : targets_(std::move(targets)) {}

  Result<bool> next(TargetBlock& block, std::size_t residues) override {
    block.set_first_index(index_);
    bool any = false;
    while (at_ < targets_->blocks.size() && block.residue_count() < residues) {
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
  std::shared_ptr<Targets::Impl> targets_;
  std::size_t at_ = 0, in_block_ = 0;
  std::uint64_t index_ = 0;
};

}  // namespace

const hmmjit::Alphabet& alphabet_of(Alphabet alphabet) {
  switch (alphabet) {
    case Alphabet::kDna:
      return dna_alphabet();
    case Alphabet::kRna:
      return rna_alphabet();
    case Alphabet::kAmino:
      break;
  }
  return amino_alphabet();
}

Alphabet to_alphabet(const hmmjit::Alphabet& alphabet) {
  return alphabet.type == AlphabetType::kDna   ? Alphabet::kDna
         : alphabet.type == AlphabetType::kRna ? Alphabet::kRna
                                               : Alphabet::kAmino;
}

// ---- models ---------------------------------------------------------------------------------

const std::string& Model::name() const { return impl_->hmm.name; }
const std::string& Model::accession() const { return impl_->accession; }
const std::string& Model::description() const { return impl_->description; }
int Model::length() const { return impl_->hmm.M; }
Alphabet Model::alphabet() const { return to_alphabet(*impl_->hmm.alphabet); }
const std::string& Model::consensus() const { return impl_->hmm.consensus; }
std::optional<ScoreCutoff> Model::gathering() const { return to_cutoff(impl_->hmm.ga); }
std::optional<ScoreCutoff> Model::trusted() const { return to_cutoff(impl_->hmm.tc); }
std::optional<ScoreCutoff> Model::noise() const { return to_cutoff(impl_->hmm.nc); }

Models::Models() : impl_(std::make_shared<Impl>()) {}

Models Models::from_file(std::string path) {
  if (path.empty()) throw Error(ErrorCode::kUsage, "a profile file has no name");
  Models out;
  out.impl_->path = std::move(path);
  return out;
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
  require_memory(impl_->path.empty(), "Models");
  impl_->models.push_back(std::move(model));
}

std::size_t Models::size() const { return impl_->models.size(); }

Model Models::operator[](std::size_t index) const {
  if (index >= impl_->models.size()) {
    throw Error(ErrorCode::kUsage, "no model " + std::to_string(index) + " among " +
                                       std::to_string(impl_->models.size()));
  }
  return impl_->models[index];
}

void Models::for_each(const std::function<bool(const Model&)>& visit) const {
  guarded([&] {
    if (impl_->path.empty()) {
      for (const Model& model : impl_->models) {
        if (!visit(model)) return;
      }
      return;
    }
    HmmReader reader = value(HmmReader::open(impl_->path));
    while (auto hmm = value(reader.next())) {
      if (!visit(make_model(*std::move(hmm)))) return;
    }
  });
}

Result<ModelSource> open_models(const std::shared_ptr<Models::Impl>& models) {
  if (!models->path.empty()) {
    HMMJIT_ASSIGN(HmmReader opened, HmmReader::open(models->path));
    return [reader = std::make_shared<HmmReader>(std::move(opened))] { return reader->next(); };
  }
  return [models, next = std::size_t{0}]() mutable -> Result<std::optional<Hmm>> {
    if (next == models->models.size()) return std::nullopt;
    const Hmm& hmm = models->models[next].impl()->hmm;
    if (hmm.alphabet != models->models[0].impl()->hmm.alphabet) {
      return fail(hmmjit::ErrorCode::kInput, "models of several alphabets in one search",
                  "model " + hmm.name, "search them one alphabet at a time");
    }
    ++next;
    return hmm;
  };
}

// ---- targets --------------------------------------------------------------------------------

Targets::Targets(Alphabet alphabet) : impl_(std::make_shared<Impl>()) {
  impl_->alphabet = &alphabet_of(alphabet);
}

Targets Targets::from_file(std::string path, const std::string& format) {
  if (path.empty()) throw Error(ErrorCode::kUsage, "a sequence file has no name");
  Targets out;
  out.impl_->alphabet = nullptr;
  out.impl_->path = std::move(path);
  out.impl_->format = to_format(format);
  return out;
}

namespace {
void read_targets(SequenceReader reader, Targets::Impl& out) {
  for (;;) {
    auto block = std::make_shared<TargetBlock>();
    if (!value(reader.read_block(*block, kBlockResidues))) return;
    block->shrink_to_fit();
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
    read_targets(value(SequenceReader::open(path, options)), *out.impl_);
    return out;
  });
}

Targets Targets::from_memory(std::string_view contents, Alphabet alphabet,
                             const std::string& format, const std::string& name) {
  return guarded([&] {
    Targets out(alphabet);
    const SequenceFormatOptions options{.alphabet = *out.impl_->alphabet,
                                        .format = to_format(format)};
    auto source = value(open_memory_source(name, {contents.data(), contents.size()}));
    read_targets(value(SequenceReader::open(std::move(source), options)), *out.impl_);
    return out;
  });
}

void Targets::add(const Sequence& sequence) {
  guarded([&] {
    require_memory(impl_->path.empty(), "Targets");
    const std::string where =
        "target " + std::to_string(impl_->targets + 1) +
        (sequence.name.empty() ? "" : " (" + std::string(sequence.name) + ")");
    if (sequence.name.empty()) {
      throw Error(ErrorCode::kInput, "a target has no name", where, "give every target a name");
    }
    const auto table = sequence_parsing::unaligned_table(*impl_->alphabet);
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
    if (impl_->blocks.empty() || impl_->blocks.back()->residue_count() >= kBlockResidues) {
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

std::size_t Targets::size() const { return impl_->targets; }
std::uint64_t Targets::residues() const { return impl_->residues; }
Alphabet Targets::alphabet() const {
  return impl_->alphabet != nullptr ? to_alphabet(*impl_->alphabet) : Alphabet::kAmino;
}

Result<std::unique_ptr<TargetSource>> open_targets(const std::shared_ptr<Targets::Impl>& targets,
                                                   const hmmjit::Alphabet& alphabet) {
  if (!targets->path.empty())
    return open_target_file(targets->path, {.alphabet = alphabet, .format = targets->format});
  if (targets->alphabet != &alphabet) {
    return fail(hmmjit::ErrorCode::kInput,
                "models and targets have different alphabets: " + std::string(alphabet.name) +
                    " and " + std::string(targets->alphabet->name),
                {}, "give the targets the alphabet of the models");
  }
  return std::make_unique<MemoryTargets>(targets);
}

}  // namespace hmmjit::v0
