#include "tests/support/shared_data.hpp"

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "build/hmm_writer.hpp"
#include "io/hmm_file.hpp"
#include "io/sequence_file.hpp"

namespace hmmjit::test_support {

using Path = std::filesystem::path;

namespace {

template <typename T>
T checked(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().to_string());
  return *std::move(result);
}

}  // namespace

std::optional<Path> shared_folder() {
  std::vector<Path> candidates;
  if (const char* named = std::getenv("HMMJIT_SHARED")) candidates.emplace_back(named);
  const Path source = HMMJIT_SOURCE_DIR;
  candidates.push_back(source / ".." / "shared");
  candidates.push_back(source / ".." / ".." / "shared");
  for (const Path& path : candidates) {
    if (std::filesystem::is_directory(path / "data")) return path.lexically_normal();
  }
  return std::nullopt;
}

std::vector<Hmm> read_models(const Path& path) {
  HmmReader reader = checked(HmmReader::open(path));
  std::vector<Hmm> models;
  while (auto hmm = checked(reader.next())) models.push_back(*std::move(hmm));
  return models;
}

std::vector<Sequence> read_sequences(const Path& path) {
  SequenceReader reader = checked(SequenceReader::open(path, {amino_alphabet()}));
  TargetBlock block;
  while (checked(reader.read_block(block, std::uint64_t{1} << 40))) {
  }
  std::vector<Sequence> sequences;
  for (std::size_t n = 0; n < block.size(); ++n) {
    const TargetView target = block[n];
    sequences.push_back(
        {std::string(target.name), {target.residues.begin(), target.residues.end()}});
  }
  return sequences;
}

std::string model_text(const Hmm& hmm) {
  std::string text;
  build::append_hmm_text(text, {hmm, 0, {}, {}, {}}, "3.3.2", "");
  return text;
}

std::string fasta_text(const Sequence& sequence, const Alphabet& alphabet) {
  std::string text = ">" + sequence.name + "\n";
  for (const Residue x : sequence.residues) text += x == alphabet.gap() ? '_' : alphabet.symbols[x];
  return text + "\n";
}

std::vector<Residue> digitise(std::string_view text, const Alphabet& alphabet) {
  std::vector<Residue> codes;
  for (const char c : text) {
    const Residue code = alphabet.digit[static_cast<unsigned char>(c)];
    if (code == kInvalidCode) throw std::runtime_error(std::string("not a residue: ") + c);
    codes.push_back(code);
  }
  return codes;
}

}  // namespace hmmjit::test_support
