// Models from sequences and alignments.
#include "hmmjit/build.hpp"

#include <cmath>
#include <utility>

#include "api/build.hpp"
#include "api/defaults.hpp"
#include "api/handles.hpp"
#include "api/inputs.hpp"
#include "api/structs.hpp"
#include "build/builder.hpp"
#include "build/sequence_model.hpp"
#include "core/random_seed.hpp"
#include "core/threads.hpp"
#include "core/workers.hpp"
#include "io/alignment_file.hpp"

namespace hmmjit::v0 {
namespace {

using AlignmentOptions = build::AlignmentOptions;

/// NaN: none.
std::optional<double> given(double value) {
  return std::isnan(value) ? std::nullopt : std::optional(value);
}

std::optional<Alphabet> alphabet_in(const hmmjit_build_options& options) {
  if (options.alphabet == -1) return std::nullopt;
  check_choice(options.alphabet, HMMJIT_RNA, "alphabet");
  return static_cast<Alphabet>(options.alphabet);
}

int threads_of(const hmmjit_build_options& options) {
  return options.threads > 0 ? options.threads : available_cores();
}

// Calls `work` with 0 to `count` - 1 on several threads and rethrows its exceptions.
template <typename Work>
void in_parallel(const hmmjit_build_options& options, std::size_t count, Work&& work) {
  const auto work_unless_cancelled = [&](std::size_t i) {
    if (options.cancellation != nullptr && options.cancellation->value.cancelled())
      throw Error(ErrorCode::kInterrupted, "the building of models was cancelled");
    work(i);
  };
  if (count == 1) return work_unless_cancelled(0);
  for_each_index(threads_of(options), count, work_unless_cancelled);
}

build::Builder to_builder(const hmmjit_build_options& options) {
  build::Builder builder;
  builder.alignment = to_alignment_options(options);
  builder.calibration = to_calibration(options);
  if (options.window_length > 0) builder.max_length = options.window_length;
  builder.tail_mass = options.window_beta;
  return builder;
}

Models build_all(AlignmentReader reader, const std::string& fallback_name,
                 const hmmjit_build_options& options) {
  build::Builder builder = to_builder(options);
  if (options.single_rows_by_matrix) {
    builder.single = to_score_system(options, reader.alphabet());
    builder.open = builder.single->gap_open;
    builder.extend = builder.single->gap_extend;
  }
  if (const auto open = given(options.gap_open)) builder.open = open;
  if (const auto extend = given(options.gap_extend)) builder.extend = extend;

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
        if (number > 1 || !build::is_model_name(fallback_name))
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

AlignmentFileOptions file_options(const std::string& format, const hmmjit_build_options& options) {
  AlignmentFileOptions out;
  if (const auto alphabet = alphabet_in(options)) out.alphabet = &alphabet_of(*alphabet);
  if (!format.empty())
    out.format = value(parse_sequence_format(format, "format", FileContent::kAlignments));
  return out;
}

}  // namespace

BuildOptions::BuildOptions() noexcept : hmmjit_build_options(hmmjit_defaults::kBuildOptions) {}

void check_options(const hmmjit_build_options& o) {
  (void)alphabet_in(o);
  check_choice(o.columns, HMMJIT_COLUMNS_REFERENCE, "columns");
  check_choice(o.weights, HMMJIT_WEIGHTS_GIVEN, "weights");
  check_choice(o.effective, HMMJIT_EFFECTIVE_SET, "effective number");
  check_choice(o.prior, HMMJIT_PRIOR_LAPLACE, "prior");
  const auto fraction = [](double x) { return x >= 0 && x <= 1; };
  require(!(o.gap_open < 0 || o.gap_open >= 0.5), "gap_open",
          "a probability, 0 or more and below 0.5");
  require(!(o.gap_extend < 0 || o.gap_extend >= 1), "gap_extend",
          "a probability, 0 or more and below 1");
  require(fraction(o.least_occupied), "least_occupied", "0 to 1");
  require(fraction(o.fragment), "fragment", "0 to 1");
  require(fraction(o.weight_identity), "weight_identity", "0 to 1");
  require(fraction(o.effective_identity), "effective_identity", "0 to 1");
  require(o.effective_number >= 0, "effective_number", "0 or more");
  require(!(o.relative_entropy <= 0), "relative_entropy", "a number above 0");
  require(o.total_entropy > 0, "total_entropy", "a number above 0");
  require(o.most_insertions == 0 || o.most_insertions >= 5, "most_insertions", "5 or more");
  require(o.window_length >= 0, "window_length", "a number of residues, or 0");
  require(o.window_beta >= 0 && o.window_beta <= 1, "window_beta", "0 to 1");
  for (const int number : {o.msv_length, o.msv_targets, o.viterbi_length, o.viterbi_targets,
                           o.forward_length, o.forward_targets})
    require(number > 0 && number <= 1'000'000, "lengths and numbers of simulated targets",
            "1 to 1000000");
  require(o.tail_mass > 0 && o.tail_mass < 1, "tail_mass", "a number above 0 and below 1");
  require(o.threads >= 0 && o.threads <= 1024, "threads", "0 to 1024");
}

build::AlignmentOptions to_alignment_options(const hmmjit_build_options& o) {
  AlignmentOptions out;
  out.columns = static_cast<AlignmentOptions::Columns>(o.columns);
  out.least_occupied = static_cast<float>(o.least_occupied);
  out.fragment = static_cast<float>(o.fragment);
  out.weights = static_cast<AlignmentOptions::Weights>(o.weights);
  out.weight_identity = o.weight_identity;
  out.effective = static_cast<AlignmentOptions::Effective>(o.effective);
  out.effective_set = o.effective_number;
  out.relative_entropy = given(o.relative_entropy);
  out.total_entropy = o.total_entropy;
  out.effective_identity = o.effective_identity;
  out.prior = static_cast<AlignmentOptions::Prior>(o.prior);
  if (o.most_insertions != 0) out.most_insertions = o.most_insertions;
  return out;
}
static_assert(HMMJIT_COLUMNS_REFERENCE == static_cast<int>(AlignmentOptions::Columns::kReference) &&
              HMMJIT_WEIGHTS_TREE == static_cast<int>(AlignmentOptions::Weights::kTree) &&
              HMMJIT_WEIGHTS_CLUSTERS == static_cast<int>(AlignmentOptions::Weights::kClusters) &&
              HMMJIT_WEIGHTS_GIVEN == static_cast<int>(AlignmentOptions::Weights::kGiven) &&
              HMMJIT_EFFECTIVE_ENTROPY_POWER ==
                  static_cast<int>(AlignmentOptions::Effective::kEntropyPower) &&
              HMMJIT_EFFECTIVE_ROWS == static_cast<int>(AlignmentOptions::Effective::kRows) &&
              HMMJIT_EFFECTIVE_SET == static_cast<int>(AlignmentOptions::Effective::kSet) &&
              HMMJIT_PRIOR_LAPLACE == static_cast<int>(AlignmentOptions::Prior::kLaplace));

build::CalibrationOptions to_calibration(const hmmjit_build_options& o) {
  return {
      o.msv_length,     o.msv_targets,     o.viterbi_length, o.viterbi_targets,
      o.forward_length, o.forward_targets, o.tail_mass,      o.seed != 0 ? o.seed : random_seed()};
}

build::ScoreSystem to_score_system(const hmmjit_build_options& o,
                                   const hmmjit::Alphabet& alphabet) {
  const std::string name = text_of(o.matrix), file = text_of(o.matrix_file);
  const auto read = [&] {
    return value(read_text(file, build::kLargestMatrixFile, "a score matrix"));
  };
  const build::SubstitutionMatrix matrix =
      value(file.empty()
                ? build::find_matrix(name.empty() ? build::usual_matrix(alphabet) : name, alphabet)
                : build::parse_matrix(read(), file, alphabet));
  return value(build::make_score_system(matrix, given(o.gap_open), given(o.gap_extend)));
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

Models build_models(const Targets& sequences, const hmmjit_build_options& options) {
  return guarded([&] {
    check_options(options);
    const hmmjit::Alphabet& alphabet =
        alphabet_of(alphabet_in(options).value_or(sequences.alphabet().value_or(Alphabet::kAmino)));
    build::Builder builder = to_builder(options);
    builder.single = to_score_system(options, alphabet);
    std::vector<std::vector<Residue>> residues;
    std::vector<QueryNames> queries;
    for_each_query(sequences, alphabet, [&](const TargetView& sequence) {
      queries.push_back(names_of(sequence));
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

Model build_model(const Sequence& sequence, const hmmjit_build_options& options) {
  return guarded([&] {
    Targets one(alphabet_in(options).value_or(Alphabet::kAmino));
    one.add(sequence);
    const Models built = build_models(one, options);
    if (built.size() == 0)
      throw Error(ErrorCode::kInput, "no model can be built of a sequence without residues",
                  std::string(sequence.name));
    return built[0];
  });
}

Models build_from_alignments(const std::string& path, const hmmjit_build_options& options,
                             const std::string& format) {
  return guarded([&] {
    check_options(options);
    return build_all(value(AlignmentReader::open(path, file_options(format, options))),
                     build::name_from_file(path), options);
  });
}

Models build_from_alignment_text(std::string_view contents, const hmmjit_build_options& options,
                                 const std::string& format, const std::string& name) {
  return guarded([&] {
    check_options(options);
    auto source = value(open_memory_source(name, {contents.data(), contents.size()}));
    return build_all(value(AlignmentReader::open(std::move(source), file_options(format, options))),
                     name, options);
  });
}

}  // namespace hmmjit::v0
