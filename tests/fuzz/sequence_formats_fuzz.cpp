// The first byte selects the format ('?': recognised), the rest is the file.
#include "tests/fuzz/sequence_checks.hpp"

using F = hmmjit::SequenceFormat;

namespace {
constexpr F kFormats[] = {
    F::kEmbl,  F::kGenbank, F::kStockholm,   F::kA2m,    F::kAlignedFasta,     F::kPsiBlast,
    F::kSelex, F::kClustal, F::kClustalLike, F::kPhylip, F::kPhylipSequential, F::kFasta};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  std::size_t choice = static_cast<std::size_t>(data[0] - 'a');
  std::optional<F> format;
  if (choice < std::size(kFormats)) format = kFormats[choice];
  read_all(bytes, format, std::size_t{1} << 20, 1000);
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  std::vector<std::string> seeds = {
      "?ID   A;\nAC   B;\nDE   C\nSQ   \n ACD 10\n//\n",
      "?LOCUS       A\nDEFINITION  B\nVERSION     C\nORIGIN\n 1 acd\n//\n",
      "?# STOCKHOLM 1.0\n#=GS a AC x\n#=GS b DE y\na AC-D\nb A--D\n\na AA\nb -A\n//\n",
      "d>a\nACDef.\n>b\nAC-E\n",
      "e>a b\nAC-D\n>c\nA--D\n",
      "fa AC-D\nb A--D\n",
      "?# x\na AC-D\nb A--D\n\na A\nb C\n",
      "?CLUSTAL W\n\na AC-D 3\nb A--D 2\n  *  *\n\na A\nb A\n",
      "?MUSCLE multiple sequence alignment\n\na AC\nb AC\n",
      "?2 10\nseqA      ACDEF\nseqB      AC-EF\n\nGHIKL\nGHIKL\n",
      "k2 10\nseqA      ACDEF\nGHIKL\nseqB      AC-EF\nGHIKL\n",
      "?2 4\nlong_name_of_a ACDE\nb ACDE\n"};
  return seeds;
}

std::vector<std::string> fuzz_folders() { return {"seq_formats", "easel_formats"}; }
