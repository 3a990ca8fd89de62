// Models from sequences and alignments.
#include "hmmjit/build.hpp"

#include <limits>
#include <utility>

#include "api/build.hpp"
#include "api/copy_members.hpp"
#include "api/handles.hpp"
#include "api/inputs.hpp"
#include "build/builder.hpp"
#include "build/sequence_model.hpp"
#include "core/random_seed.hpp"
#include "core/task_pool.hpp"
#include "core/threads.hpp"
#include "io/alignment_file.hpp"

namespace hmmjit::v0 {
namespace {

using AlignmentOptions = build::AlignmentOptions;

std::string read_file(const std::string& path) {
  constexpr std::size_t kLargestMatrix = std::size_t{1} << 20;
  const std::unique_ptr<ByteSource> source = value(open_byte_source(path));
  std::string text;
  for (;;) {
    const std::span<const char> bytes = value(source->next());
    if (bytes.empty()) return text;
    text.append(bytes.begin(), bytes.end());
    if (text.size() > kLargestMatrix)
      throw Error(ErrorCode::kInput, "the file is too large for a score matrix", path);
  }
}

int threads_of(const BuildOptions& options) {
  return options.threads > 0 ? options.threads : available_cores();
}

// Calls `work` with 0 to `count` - 1 on several threads and rethrows its exceptions.
template <typename Work>
void in_parallel(const BuildOptions& options, std::size_t count, Work&& work) {
  if (count == 1) return work(std::size_t{0});
  for_each_index(threads_of(options), count, work);
}

build::Builder to_builder(const BuildOptions& options) {
  build::Builder builder;
  builder.alignment = to_alignment_options(options);
  builder.calibration = to_calibration(options);
  if (options.window_length > 0) builder.max_length = options.window_length;
  builder.tail_mass = options.window_beta;
  return builder;
}

Models build_all(AlignmentReader reader, const std::string& fallback_name,
                 const BuildOptions& options) {
  build::Builder builder = to_builder(options);
  if (options.single_rows_by_matrix) {
    builder.single = to_score_system(options, reader.alphabet());
    builder.open = builder.single->gap_open;
    builder.extend = builder.single->gap_extend;
  }
  if (options.gap_open) builder.open = options.gap_open;
  if (options.gap_extend) builder.extend = options.gap_extend;

  Models out;
  std::size_t number = 0;
  const auto batch = static_cast<std::size_t>(8 * threads_of(options));
  for (bool more = true; more;) {
    std::vector<MultipleAlignment> alignments;
    while (alignments.size() < batch) {
      std::optional<MultipleAlignment> alignment = value(reader.next());
      more = alignment.has_value();
      if (!more) break;
      ++number;
      if (alignment->name.empty()) {
        if (number > 1 || fallback_name.empty())
          throw Error(ErrorCode::kInput, "alignment " + std::to_string(number) + " has no name",
                      reader.name(), "name each alignment in its file (#=GF ID)");
        alignment->name = fallback_name;
      }
      alignments.push_back(*std::move(alignment));
    }
    std::vector<build::BuiltModel> built(alignments.size());
    in_parallel(options, alignments.size(),
                [&](std::size_t i) { built[i] = value(builder.from_alignment(alignments[i])); });
    for (build::BuiltModel& model : built) out.add(make_model(std::move(model)));
  }
  if (number == 0)
    throw Error(ErrorCode::kInput, "no alignment in the file", reader.name(),
                "give a file with an alignment");
  return out;
}

AlignmentFileOptions file_options(const std::string& format, const BuildOptions& options) {
  AlignmentFileOptions out;
  if (options.alphabet) out.alphabet = &alphabet_of(*options.alphabet);
  if (!format.empty()) out.format = value(parse_sequence_format(format, "format"));
  return out;
}

}  // namespace

void check_options(const BuildOptions& o) {
  const auto fraction = [](double x) { return x >= 0 && x <= 1; };
  require(!o.gap_open || (*o.gap_open >= 0 && *o.gap_open < 0.5), "gap_open",
          "a probability, 0 or more and below 0.5");
  require(!o.gap_extend || (*o.gap_extend >= 0 && *o.gap_extend < 1), "gap_extend",
          "a probability, 0 or more and below 1");
  require(fraction(o.least_occupied), "least_occupied", "0 to 1");
  require(fraction(o.fragment), "fragment", "0 to 1");
  require(fraction(o.weight_identity), "weight_identity", "0 to 1");
  require(fraction(o.effective_identity), "effective_identity", "0 to 1");
  require(o.effective_number >= 0, "effective_number", "0 or more");
  require(!o.relative_entropy || *o.relative_entropy > 0, "relative_entropy", "a number above 0");
  require(o.total_entropy > 0, "total_entropy", "a number above 0");
  require(!o.most_insertions || *o.most_insertions >= 5, "most_insertions", "5 or more");
  require(o.window_length >= 0, "window_length", "a number of residues, or 0");
  require(o.window_beta >= 0 && o.window_beta <= 1, "window_beta", "0 to 1");
  for (const int number : {o.msv_length, o.msv_targets, o.viterbi_length, o.viterbi_targets,
                           o.forward_length, o.forward_targets})
    require(number > 0 && number <= 1'000'000, "lengths and numbers of simulated targets",
            "1 to 1000000");
  require(o.tail_mass > 0 && o.tail_mass < 1, "tail_mass", "a number above 0 and below 1");
  require(o.threads >= 0 && o.threads <= 1024, "threads", "0 to 1024");
}

build::AlignmentOptions to_alignment_options(const BuildOptions& o) {
  AlignmentOptions out;
  HMMJIT_COPY_MEMBERS(HMMJIT_BUILD_OPTIONS_MEMBERS, 18)(out, o);
  out.effective_set = o.effective_number;
  return out;
}
static_assert(
    static_cast<int>(MatchColumns::kReference) ==
        static_cast<int>(AlignmentOptions::Columns::kReference) &&
    static_cast<int>(RowWeights::kGiven) == static_cast<int>(AlignmentOptions::Weights::kGiven) &&
    static_cast<int>(RowWeights::kTree) == static_cast<int>(AlignmentOptions::Weights::kTree) &&
    static_cast<int>(RowWeights::kClusters) ==
        static_cast<int>(AlignmentOptions::Weights::kClusters) &&
    static_cast<int>(EffectiveNumber::kEntropyPower) ==
        static_cast<int>(AlignmentOptions::Effective::kEntropyPower) &&
    static_cast<int>(EffectiveNumber::kRows) ==
        static_cast<int>(AlignmentOptions::Effective::kRows) &&
    static_cast<int>(EffectiveNumber::kSet) ==
        static_cast<int>(AlignmentOptions::Effective::kSet) &&
    static_cast<int>(ModelPrior::kLaplace) == static_cast<int>(AlignmentOptions::Prior::kLaplace));

build::CalibrationOptions to_calibration(const BuildOptions& o) {
  build::CalibrationOptions out;
  HMMJIT_COPY_MEMBERS(HMMJIT_BUILD_OPTIONS_MEMBERS, 21)(out, o);
  out.seed = o.seed != 0 ? o.seed : random_seed();
  return out;
}

build::ScoreSystem to_score_system(const BuildOptions& o, const hmmjit::Alphabet& alphabet) {
  const bool protein = alphabet.type == AlphabetType::kAmino;
  const std::string name = !o.matrix.empty() ? o.matrix : protein ? "BLOSUM62" : "DNA1";
  const build::SubstitutionMatrix matrix =
      o.matrix_file.empty()
          ? value(build::find_matrix(name, alphabet))
          : value(build::parse_matrix(read_file(o.matrix_file), o.matrix_file, alphabet));
  return value(build::make_score_system(matrix, o.gap_open.value_or(protein ? 0.02 : 0.03125),
                                        o.gap_extend.value_or(protein ? 0.4 : 0.75)));
}

void for_each_query(const Targets& sequences, const hmmjit::Alphabet& alphabet,
                    const std::function<void(const TargetView& sequence)>& use) {
  const auto source = value(open_targets(sequences.impl(), alphabet));
  ResidueCopies copies;
  for (;;) {
    TargetBlock block;
    if (!value(source->next(block, std::size_t{1} << 20))) return;
    for (std::size_t i = 0; i < block.size(); ++i) {
      TargetView sequence = block[i];
      copies.clear();
      sequence.residues = value(copies.of(block, i, alphabet));
      if (!sequence.residues.empty()) use(sequence);
    }
  }
}

Models build_models(const Targets& sequences, const BuildOptions& options) {
  return guarded([&] {
    check_options(options);
    const hmmjit::Alphabet& alphabet =
        alphabet_of(options.alphabet.value_or(sequences.alphabet().value_or(Alphabet::kAmino)));
    build::Builder builder = to_builder(options);
    builder.single = to_score_system(options, alphabet);
    std::vector<std::vector<Residue>> residues;
    std::vector<Model::Query> queries;
    for_each_query(sequences, alphabet, [&](const TargetView& sequence) {
      queries.push_back({std::string(sequence.name), std::string(sequence.accession),
                         std::string(sequence.description)});
      residues.emplace_back(sequence.residues.begin(), sequence.residues.end());
    });
    std::vector<build::BuiltModel> built(residues.size());
    in_parallel(options, built.size(), [&](std::size_t i) {
      built[i] = value(builder.from_sequence(queries[i].name, residues[i]));
    });
    Models out;
    for (std::size_t i = 0; i < built.size(); ++i)
      out.add(make_model(std::move(built[i]), std::move(queries[i])));
    return out;
  });
}

Model build_model(const Sequence& sequence, const BuildOptions& options) {
  return guarded([&] {
    Targets one(options.alphabet.value_or(Alphabet::kAmino));
    one.add(sequence);
    const Models built = build_models(one, options);
    if (built.size() == 0)
      throw Error(ErrorCode::kInput, "no model can be built of a sequence without residues",
                  std::string(sequence.name));
    return built[0];
  });
}

Models build_from_alignments(const std::string& path, const BuildOptions& options,
                             const std::string& format) {
  return guarded([&] {
    check_options(options);
    return build_all(value(AlignmentReader::open(path, file_options(format, options))),
                     path == "-" ? "" : build::name_from_file(path), options);
  });
}

Models build_from_alignment_text(std::string_view contents, const BuildOptions& options,
                                 const std::string& format, const std::string& name) {
  return guarded([&] {
    check_options(options);
    auto source = value(open_memory_source(name, {contents.data(), contents.size()}));
    return build_all(value(AlignmentReader::open(std::move(source), file_options(format, options))),
                     name, options);
  });
}

}  // namespace hmmjit::v0
