// Alignments with their annotation, and models built from them. The first byte selects the format
// ('?': recognised), the second the options; the rest is the file.
#include "build/alignment_model.hpp"
#include "io/alignment_file.hpp"
#include "tests/fuzz/entry.hpp"

namespace {

using namespace hmmjit;
using F = SequenceFormat;

constexpr F kFormats[] = {F::kStockholm,   F::kA2m,    F::kAlignedFasta,
                          F::kPsiBlast,    F::kSelex,  F::kClustal,
                          F::kClustalLike, F::kPhylip, F::kPhylipSequential};

void build_one(const MultipleAlignment& alignment, unsigned choice) {
  using Options = build::AlignmentOptions;
  // Weights take time quadratic in the rows, the effective number many passes over the columns.
  constexpr std::size_t kMostCells = 20000;
  if (alignment.rows() * alignment.columns > kMostCells || alignment.rows() > 60) return;
  if (alignment.alphabet->type != AlphabetType::kAmino) return;
  Options options;
  options.columns = choice & 1 ? Options::Columns::kReference : Options::Columns::kOccupied;
  options.weights = static_cast<Options::Weights>(choice / 2 % 5);
  options.effective = static_cast<Options::Effective>(choice / 10 % 4);
  options.prior = static_cast<Options::Prior>(choice / 40 % 3);
  const auto model = build::build_from_alignment(alignment, options);
  if (!model) return require(!model.error().message.empty());
  require(model->hmm.M > 0 && model->hmm.M <= static_cast<int>(alignment.columns));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  auto source =
      open_memory_source("fuzz", {reinterpret_cast<const char*>(data) + 2, size - 2}, 4096);
  if (!source) return 0;
  AlignmentFileOptions options;
  const auto format = static_cast<std::size_t>(data[0] - 'a');
  if (format < std::size(kFormats)) options.format = kFormats[format];
  if (data[1] % 2 == 0) options.alphabet = &amino_alphabet();
  auto reader = AlignmentReader::open(std::move(*source), options);
  if (!reader) {
    require(!reader.error().message.empty());
    return 0;
  }
  for (;;) {
    const auto next = reader->next();
    if (!next) require(!next.error().message.empty());
    if (!next || !*next) return 0;
    build_one(**next, data[1] / 2);
  }
}

std::vector<std::string> fuzz_seeds() {
  return {
      "?0# STOCKHOLM 1.0\n#=GF ID a\n#=GF GA 1 2;\n#=GS x WT 0.5\nx AC-DEF\ny A--DEG\nz ACC-EF\n"
      "#=GC RF xx.xxx\n#=GC MM ...m..\n#=GC SS_cons HH..EE\n//\n",
      "?!# STOCKHOLM 1.0\nx ACD\ny A-D\n\nx EF\ny E-\n#=GC RF xx\n//\n",
      "b0>a\nACDef.\n>b\nAC-E\n",
      "c0>a b\nAC-D\n>c\nA--D\n",
      "da AC-D\nb A--D\n",
      "e0# x\na AC-D\nb A--D\n\na A\nb C\n",
      "?2CLUSTAL W\n\na AC-D 3\nb A--D 2\n  *  *\n\na A\nb A\n",
      "?4 2 10\nseqA      ACDEF\nseqB      AC-EF\n\nGHIKL\nGHIKL\n",
      "i6 2 10\nseqA      ACDEF\nGHIKL\nseqB      AC-EF\nGHIKL\n"};
}

std::vector<std::string> fuzz_folders() { return {}; }
