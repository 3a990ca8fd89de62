#include "build/alignment_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "build/parameters.hpp"
#include "build/priors.hpp"
#include "build/row_paths.hpp"
#include "build/row_weights.hpp"
#include "core/text_fields.hpp"
#include "core/threads.hpp"
#include "model/numeric.hpp"

namespace hmmjit::build {

// Overload set for float and double.
using hmmjit::compensated_sum;
using hmmjit::normalise;

namespace {

std::string where_of(const MultipleAlignment& alignment) {
  return alignment.name.empty() ? "the alignment" : "alignment " + alignment.name;
}

// ---- Requirements ---------------------------------------------------------------------------

Status check(const MultipleAlignment& alignment) {
  const Alphabet& alphabet = *alignment.alphabet;
  if (alignment.rows() == 0 || alignment.columns == 0)
    return fail(ErrorCode::kInput, "there is nothing aligned", where_of(alignment),
                "give an alignment with rows and columns");
  for (std::size_t row = 0; row < alignment.rows(); ++row) {
    const std::span<const Residue> codes = alignment.row(row);
    const auto missing = [&](Residue code) { return code == alphabet.missing(); };
    auto begin = std::ranges::find_if_not(codes, missing);
    auto end = codes.end();
    while (end != begin && missing(*(end - 1))) --end;
    if (std::any_of(begin, end, missing))
      return fail(ErrorCode::kInput,
                  fmt::format("row {} has missing data (~) inside", alignment.row_names[row]),
                  where_of(alignment), "use ~ only where a fragment begins or ends");
  }
  return {};
}

// ---- Weights and columns --------------------------------------------------------------------

std::vector<double> weights_of(const MultipleAlignment& alignment,
                               const AlignmentOptions& options) {
  using Weights = AlignmentOptions::Weights;
  const std::vector<double> ones(alignment.rows(), 1.0);
  if (options.weights == Weights::kGiven)
    return alignment.weights.empty() ? ones : alignment.weights;
  if (alignment.rows() == 1) return ones;
  switch (options.weights) {
    case Weights::kPositionBased:
      return position_based_weights(
          alignment,
          options.columns == AlignmentOptions::Columns::kReference && !alignment.rf.empty());
    case Weights::kTree:
      return tree_weights(alignment);
    case Weights::kClusters:
      return cluster_weights(alignment, options.weight_identity);
    default:
      return ones;
  }
}

// The match columns of `alignment`, in which fragments are marked.
Result<std::vector<bool>> match_columns(const MultipleAlignment& alignment,
                                        const AlignmentOptions& options,
                                        std::span<const double> weights) {
  const Alphabet& alphabet = *alignment.alphabet;
  std::vector<bool> match(alignment.columns, false);
  const bool reference = options.columns == AlignmentOptions::Columns::kReference;
  if (reference) {
    if (alignment.rf.empty())
      return fail(ErrorCode::kInput, "the alignment has no reference annotation (RF)",
                  where_of(alignment), "mark match columns in #=GC RF, or leave out --hand");
    for (std::size_t c = 0; c < match.size(); ++c) match[c] = is_reference_column(alignment.rf[c]);
  } else {
    std::vector<float> residues(alignment.columns, 0.0f), all(alignment.columns, 0.0f);
    const auto add = [](float& sum, double weight) {
      sum = static_cast<float>(static_cast<double>(sum) + weight);
    };
    for (std::size_t row = 0; row < alignment.rows(); ++row) {
      const std::span<const Residue> codes = alignment.row(row);
      for (std::size_t c = 0; c < codes.size(); ++c) {
        const bool residue = is_any_residue(alphabet, codes[c]);
        if (residue) add(residues[c], weights[row]);
        if (residue || codes[c] == alphabet.gap()) add(all[c], weights[row]);
      }
    }
    for (std::size_t c = 0; c < match.size(); ++c)
      match[c] = residues[c] > 0.0f && residues[c] / all[c] >= options.least_occupied;
  }
  if (std::ranges::find(match, true) != match.end()) return match;
  if (reference)
    return fail(ErrorCode::kInput, "no column is marked as a consensus column", where_of(alignment),
                "mark match columns in #=GC RF, or leave out --hand");
  const auto total = static_cast<float>(std::accumulate(weights.begin(), weights.end(), 0.0));
  if (total == 0 || std::isinf(total))
    return fail(ErrorCode::kInput, fmt::format("the weights of the rows sum to {}", total),
                where_of(alignment), "correct them (#=GS WT), or leave out --wgiven");
  return fail(ErrorCode::kInput,
              fmt::format("no column has residues in {:.0f}% of the rows",
                          100.0 * static_cast<double>(options.least_occupied)),
              where_of(alignment), "check the alignment, or lower --symfrac");
}

// ---- Counts to parameters -------------------------------------------------------------------

void scale(std::span<float> counts, double factor) {
  const auto f = static_cast<float>(factor);
  for (float& count : counts) count *= f;
}
void scale(Hmm& counts, double factor) {
  scale(counts.match, factor);
  scale(counts.insert, factor);
  scale(counts.transition, factor);
}

void match_emissions(Hmm& hmm, const Priors* priors) {
  for (int k = 1; k <= hmm.M; ++k) {
    const std::span<float> counts = hmm.match_row(k);
    if (priors != nullptr)
      priors->match.mean_posterior(counts);
    else
      normalise(counts);
  }
}

// Sets frequencies or, with priors, mean posterior probabilities.
void make_parameters(Hmm& hmm, const Priors* priors) {
  if (priors == nullptr) return renormalise(hmm);
  const int M = hmm.M;
  match_emissions(hmm, priors);
  for (int k = 0; k <= M; ++k) {
    const std::span<float> t = hmm.transition_row(k), deletion = t.subspan(kDM, 2);
    priors->match_transition.mean_posterior(t.subspan(kMM, 3));
    priors->insert_transition.mean_posterior(t.subspan(kIM, 2));
    priors->insert.mean_posterior(hmm.insert_row(k));
    if (k > 0 && k < M) {
      priors->delete_transition.mean_posterior(deletion);
    } else {
      deletion[0] = 1.0f;
      deletion[1] = 0.0f;
    }
  }
  const std::span<float> last = hmm.transition_row(M).subspan(kMM, 3);
  last[2] = 0.0f;
  normalise(last);
  const std::span<float> begin = hmm.match_row(0);
  std::ranges::fill(begin, 0.0f);
  begin[0] = 1.0f;
}

// ---- Effective number of sequences ----------------------------------------------------------

// Root of a monotonic function by bisection, to a `tolerance` in x. Returns the last midpoint, like
// HMMER; nullopt if both ends have the same sign.
template <typename Function>
std::optional<double> bisect(Function&& function, double left, double right, double at_right,
                             double tolerance) {
  constexpr int kSteps = 100;
  double at_left = function(left);
  if (at_left * at_right >= 0) return std::nullopt;
  for (int step = 0; step < kSteps; ++step) {
    const double x = (left + right) / 2.0;
    const double value = function(x);
    if (value == 0 || right - left < tolerance + 1e-12 * x) return x;
    if ((at_left > 0) == (value > 0)) {
      left = x;
      at_left = value;
    } else {
      right = x;
    }
  }
  return std::nullopt;
}

class EffectiveNumber {
 public:
  EffectiveNumber(const Hmm& counts, double rows, const Priors* priors,
                  const AlignmentOptions& options)
      : counts_(counts), rows_(rows), priors_(priors) {
    const auto M = static_cast<double>(counts.M);
    target_ = (options.total_entropy - 1.44269504088896341 * std::log(2.0 / (M * (M + 1.0)))) / M;
    const bool protein = counts.alphabet->type == AlphabetType::kAmino;
    target_ = std::max(options.relative_entropy.value_or(protein ? 0.59 : 0.62), target_);
  }

  std::optional<double> by_scaling() const {
    const auto excess = [&](double n) {
      Hmm hmm = emissions();
      scale(hmm.match, n / rows_);
      return entropy(std::move(hmm)) - target_;
    };
    const double at_rows = excess(rows_);
    if (!(at_rows > 0)) return rows_;
    return bisect(excess, 0.0, rows_, at_rows, 0.01);
  }

  // Finds the exponent for the counts of each node.
  std::optional<double> by_power() const {
    const auto excess = [&](double e) {
      Hmm hmm = emissions();
      for (int k = 1; k <= hmm.M; ++k) {
        const std::span<float> row = hmm.match_row(k);
        scale(row, factor(row, e));
      }
      return entropy(std::move(hmm)) - target_;
    };
    const double at_one = excess(1.0);
    if (!(at_one > 0)) return 1.0;
    return bisect(excess, 0.0, 1.0, at_one, 0.001);
  }

  static double factor(std::span<const float> row, double e) {
    const float count = compensated_sum(row);
    if (!(count > 0.0f)) return 1.0;
    const auto scaled = static_cast<float>(std::pow(static_cast<double>(count), e));
    return static_cast<double>(scaled / count);
  }

 private:
  Hmm emissions() const {
    Hmm hmm;
    hmm.M = counts_.M;
    hmm.alphabet = counts_.alphabet;
    hmm.match = counts_.match;
    return hmm;
  }
  double entropy(Hmm hmm) const {
    match_emissions(hmm, priors_);
    return mean_relative_entropy(hmm);
  }

  const Hmm& counts_;
  double rows_;
  const Priors* priors_;
  double target_ = 0;
};

Status set_effective_number(BuiltModel& built, const MultipleAlignment& alignment,
                            const AlignmentOptions& options, const Priors* priors) {
  using Effective = AlignmentOptions::Effective;
  Hmm& counts = built.hmm;
  const auto rows = static_cast<double>(alignment.rows());
  const EffectiveNumber number(counts, rows, priors, options);
  std::optional<double> value;
  switch (options.effective) {
    case Effective::kEntropyPower: {
      const std::optional<double> e = number.by_power();
      if (!e) break;
      double sum = 0;
      for (int k = 1; k <= counts.M; ++k) {
        const double s = EffectiveNumber::factor(counts.match_row(k), *e);
        scale(counts.match_row(k), s);
        scale(counts.insert_row(k), s);
        scale(counts.transition_row(k), s);
        sum += static_cast<double>(compensated_sum(counts.match_row(k)));
      }
      built.effective_sequences = static_cast<float>(sum / static_cast<double>(counts.M));
      return {};
    }
    case Effective::kEntropy:
      value = number.by_scaling();
      break;
    case Effective::kClusters: {
      std::vector<std::size_t> cluster;
      value = static_cast<double>(cluster_rows(alignment, options.effective_identity, cluster));
      break;
    }
    case Effective::kRows:
      value = rows;
      break;
    case Effective::kSet:
      value = options.effective_set;
      break;
  }
  if (!value)
    return fail(ErrorCode::kInput, "no effective number of sequences gives the wanted entropy",
                where_of(alignment), "change --ere or --esigma, or use --enone or --eset");
  built.effective_sequences = static_cast<float>(*value);
  scale(counts, static_cast<double>(*built.effective_sequences) / rows);
  return {};
}

// ---- Annotation -----------------------------------------------------------------------------

std::string in_match_columns(const std::string& line, const std::vector<bool>& match) {
  std::string out;
  for (std::size_t c = 0; c < line.size(); ++c) {
    if (match[c]) out += line[c];
  }
  return out;
}

}  // namespace

Result<BuiltModel> build_from_alignment(const MultipleAlignment& given,
                                        const AlignmentOptions& options, AlignedRows* rows) {
  const FlushToZeroScope flush;  // as in HMMER
  HMMJIT_TRY(check(given));
  const std::vector<double> weights = weights_of(given, options);

  MultipleAlignment alignment = given;
  mark_fragments(alignment, options.fragment);
  HMMJIT_ASSIGN(const std::vector<bool> match, match_columns(alignment, options, weights));
  const Alphabet& alphabet = *alignment.alphabet;
  for (std::size_t c = 0; c < alignment.mm.size(); ++c) {
    if (alignment.mm[c] != 'm') continue;
    for (std::size_t row = 0; row < alignment.rows(); ++row) {
      Residue& code = alignment.row(row)[c];
      if (code != alphabet.gap() && code != alphabet.missing())
        code = static_cast<Residue>(alphabet.any());
    }
  }

  BuiltModel built;
  built.sequences = static_cast<int>(alignment.rows());
  built.hmm.checksum = checksum_of(given);
  Hmm& hmm = built.hmm;
  hmm.name = given.name;
  hmm.accession = given.accession;
  hmm.description = given.description;
  if (hmm.description) {  // HMMER trims it too, but keeps an empty one, which no program reads
    hmm.description->resize(trim_end(*hmm.description).size());
    if (hmm.description->empty()) hmm.description.reset();
  }
  hmm.alphabet = &alphabet;
  built.hmm.map.push_back(0);
  for (std::size_t c = 0; c < match.size(); ++c) {
    if (match[c]) built.hmm.map.push_back(static_cast<int>(c) + 1);
  }
  hmm.M = static_cast<int>(built.hmm.map.size()) - 1;
  const std::size_t nodes = built.hmm.map.size();
  hmm.match.assign(nodes * static_cast<std::size_t>(alphabet.K), 0.0f);
  hmm.insert.assign(nodes * static_cast<std::size_t>(alphabet.K), 0.0f);
  hmm.transition.assign(nodes * kTransitions, 0.0f);
  count_alignment(alignment, match, weights, hmm);
  if (rows != nullptr) {
    *rows = align_rows(alignment, match);
    rows->weights = weights;
    rows->weighted = !given.weights.empty() ||
                     (given.rows() > 1 && options.weights != AlignmentOptions::Weights::kNone &&
                      options.weights != AlignmentOptions::Weights::kGiven);
  }
  if (options.most_insertions) {
    for (int k = 1; k < hmm.M; ++k) {
      const std::span<float> t = hmm.transition_row(k);
      t[kII] = std::min(t[kII], static_cast<float>(*options.most_insertions) * t[kMI]);
    }
  }

  const Priors* const priors = options.prior == AlignmentOptions::Prior::kNone ? nullptr
                               : options.prior == AlignmentOptions::Prior::kLaplace
                                   ? &laplace_priors(alphabet)
                                   : &mixture_priors(alphabet);
  HMMJIT_TRY(set_effective_number(built, alignment, options, priors));
  make_parameters(hmm, priors);

  hmm.rf = in_match_columns(given.rf, match);
  hmm.mm = in_match_columns(given.mm, match);
  hmm.cs = in_match_columns(given.cs, match);
  std::ranges::replace(hmm.mm, '.', '-');
  built.accessibility = in_match_columns(given.sa, match);
  hmm.ga = given.ga;
  hmm.tc = given.tc;
  hmm.nc = given.nc;
  set_composition(hmm);
  hmm.consensus = compute_consensus(hmm);
  hmm.needs_calibration = true;
  return built;
}

std::uint32_t checksum_of(const MultipleAlignment& alignment) {
  // Jenkins' one-at-a-time hash.
  std::uint32_t value = 0;
  for (const Residue code : alignment.residues) {
    value += code;
    value += value << 10;
    value ^= value >> 6;
  }
  value += value << 3;
  value ^= value >> 11;
  value += value << 15;
  return value;
}

void apply_mask(Hmm& hmm) {
  const auto K = static_cast<std::size_t>(hmm.alphabet->K);
  for (int k = 1; k < hmm.M && !hmm.mm.empty(); ++k) {
    if (hmm.mm[static_cast<std::size_t>(k - 1)] != 'm') continue;
    std::copy_n(hmm.alphabet->background.begin(), K, hmm.match_row(k).begin());
  }
}

}  // namespace hmmjit::build
