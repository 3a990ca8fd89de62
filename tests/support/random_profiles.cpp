#include "tests/support/random_profiles.hpp"

#include <algorithm>
#include <cmath>
#include <span>

namespace hmmjit::test_support {
namespace {

void normalise(std::span<float> p) {
  double sum = 0;
  for (const float v : p) sum += static_cast<double>(v);
  for (float& v : p) {
    v = sum > 0 ? static_cast<float>(static_cast<double>(v) / sum)
                : static_cast<float>(1.0 / static_cast<double>(p.size()));
  }
}

void fill_emissions(Random& random, std::span<float> p, std::span<const float> background,
                    ModelKind kind) {
  const int K = static_cast<int>(p.size());
  const int favourite = random.integer(0, K - 1);
  for (int x = 0; x < K; ++x) {
    const double f = static_cast<double>(background[x]);
    double v = 0;
    switch (kind) {
      case ModelKind::kFlat:
        v = f * (0.95 + 0.1 * random.real());
        break;
      case ModelKind::kStrong:
        v = x == favourite ? 1.0 : 1e-4 * random.real();
        break;
      case ModelKind::kImpossible:
        v = x == favourite ? 1.0 : (random.chance(0.5) ? 0.0 : random.real());
        break;
      case ModelKind::kExtreme:
        v = std::pow(10.0, -30.0 * random.real());
        break;
      default:
        v = f * random.real();
        if (x == favourite) v += 0.8 * random.real();
    }
    p[x] = static_cast<float>(v);
  }
  normalise(p);
}

// Probabilities of leaving (insert, delete) from match, staying in insert, staying in delete.
void fill_transitions(Random& random, std::span<float> t, ModelKind kind) {
  double mi = 0.01 * random.real(), md = 0.01 * random.real();
  double ii = 0.3 + 0.4 * random.real(), dd = 0.2 + 0.5 * random.real();
  switch (kind) {
    case ModelKind::kDeleteRich:
      md = 0.3 + 0.3 * random.real(), dd = 0.95 + 0.0499 * random.real();
      break;
    case ModelKind::kInsertRich:
      mi = 0.3 + 0.3 * random.real(), ii = 0.9 + 0.0999 * random.real();
      break;
    case ModelKind::kImpossible:
      if (random.chance(0.4)) mi = 0;
      if (random.chance(0.4)) md = 0;
      if (random.chance(0.3)) ii = random.chance(0.5) ? 0 : 1;
      if (random.chance(0.3)) dd = random.chance(0.5) ? 0 : 1;
      break;
    case ModelKind::kExtreme:
      mi = std::pow(10.0, -20.0 * random.real()) / 3,
      md = std::pow(10.0, -20.0 * random.real()) / 3;
      ii = 1 - std::pow(10.0, -7.0 * random.real()), dd = 1 - std::pow(10.0, -7.0 * random.real());
      break;
    default:
      break;
  }
  t[kMM] = static_cast<float>(1 - mi - md);
  t[kMI] = static_cast<float>(mi);
  t[kMD] = static_cast<float>(md);
  t[kIM] = static_cast<float>(1 - ii);
  t[kII] = static_cast<float>(ii);
  t[kDM] = static_cast<float>(1 - dd);
  t[kDD] = static_cast<float>(dd);
}

// A residue drawn at the given frequencies.
Residue draw(Random& random, std::span<const float> p) {
  double left = random.real();
  for (std::size_t x = 0; x < p.size(); ++x) {
    left -= static_cast<double>(p[x]);
    if (left < 0) return static_cast<Residue>(x);
  }
  return static_cast<Residue>(random.integer(0, static_cast<int>(p.size()) - 1));
}

}  // namespace

std::uint64_t Random::next() {
  state_ += 0x9e3779b97f4a7c15u;
  std::uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

double Random::real() { return static_cast<double>(next() >> 11) * 0x1p-53; }

int Random::integer(int low, int high) {
  const auto span = static_cast<std::uint64_t>(static_cast<std::int64_t>(high) - low + 1);
  return low + static_cast<int>(next() % span);
}

ModelKind any_model_kind(Random& random) { return kAllModelKinds[random.integer(0, 6)]; }
TargetKind any_target_kind(Random& random) { return kAllTargetKinds[random.integer(0, 5)]; }

std::string to_string(ModelKind kind) {
  constexpr const char* kNames[] = {"typical",     "flat",       "strong", "delete-rich",
                                    "insert-rich", "impossible", "extreme"};
  return kNames[static_cast<int>(kind)];
}

std::string to_string(TargetKind kind) {
  constexpr const char* kNames[] = {"background", "uniform-codes",  "homologous",
                                    "tandem",     "low-complexity", "nonresidue"};
  return kNames[static_cast<int>(kind)];
}

Hmm random_hmm(std::uint64_t seed, int M, ModelKind kind, const Alphabet& alphabet) {
  Random random(seed * 1000003u + static_cast<std::uint64_t>(M) * 31u +
                static_cast<std::uint64_t>(kind));
  const int K = alphabet.K;
  const auto rows = static_cast<std::size_t>(M) + 1;
  const std::span<const float> background(alphabet.background.data(), static_cast<std::size_t>(K));
  Hmm hmm;
  hmm.name = to_string(kind) + "-" + std::to_string(M) + "-" + std::to_string(seed);
  hmm.M = M;
  hmm.alphabet = &alphabet;
  hmm.match.assign(rows * K, 0.0f);
  hmm.insert.assign(rows * K, 0.0f);
  hmm.transition.assign(rows * kTransitions, 0.0f);
  const auto width = static_cast<std::size_t>(K);
  for (int k = 0; k <= M; ++k) {
    const std::size_t at = static_cast<std::size_t>(k) * K;
    if (k > 0) fill_emissions(random, {hmm.match.data() + at, width}, background, kind);
    std::copy(background.begin(), background.end(), hmm.insert.begin() + static_cast<long>(at));
    fill_transitions(random,
                     {hmm.transition.data() + static_cast<std::size_t>(k) * kTransitions,
                      std::size_t{kTransitions}},
                     kind);
  }
  // Begin never starts in I0 alone; the last node leads to the end.
  hmm.transition[kMM] = std::max(hmm.transition[kMM], 0.01f);
  float* last = hmm.transition.data() + static_cast<std::size_t>(M) * kTransitions;
  last[kMM] = 1 - last[kMI], last[kMD] = 0, last[kDM] = 1, last[kDD] = 0;

  for (int k = 1; k <= M; ++k) {
    for (int x = 0; x < K; ++x) hmm.compo[x] += hmm.match_p(k, x) / static_cast<float>(M);
  }
  hmm.consensus = compute_consensus(hmm);
  hmm.calibration = {-8.0f, 0.7f, -9.0f, 0.7f, -3.5f, 0.7f};
  return hmm;
}

std::shared_ptr<const SearchModel> random_model(std::uint64_t seed, int M, ModelKind kind,
                                                const Alphabet& alphabet) {
  return make_search_model(random_hmm(seed, M, kind, alphabet));
}

ByteProfile random_byte_profile(std::uint64_t seed, int M, const Alphabet& alphabet) {
  Random random(seed * 7919u + static_cast<std::uint64_t>(M));
  // The constants come from a real model, so that the length functions stay meaningful.
  ByteProfile bytes = random_model(seed, M, ModelKind::kTypical, alphabet)->bytes;
  bytes.bias = static_cast<std::uint8_t>(random.integer(0, 40));
  const int spread = random.chance(0.3) ? 255 : bytes.bias + random.integer(1, 60);
  for (auto& cost : bytes.cost) {
    cost = random.chance(0.02)
               ? std::uint8_t{255}
               : static_cast<std::uint8_t>(random.integer(0, std::min(spread, 255)));
  }
  return bytes;
}

WordProfile random_word_profile(std::uint64_t seed, int M, const Alphabet& alphabet) {
  Random random(seed * 104729u + static_cast<std::uint64_t>(M));
  WordProfile words = random_model(seed, M, ModelKind::kTypical, alphabet)->words;
  // Gains up to the largest a probability ratio gives, now and then saturating ones.
  const int gain = random.chance(0.2) ? 32767 : random.integer(100, 4000);
  for (auto& score : words.match) {
    score = static_cast<std::int16_t>(random.chance(0.05) ? -32768 : random.integer(-8000, gain));
  }
  const auto cost = [&](int free_chance) {
    if (random.chance(0.02)) return std::int16_t{-32768};
    return static_cast<std::int16_t>(
        random.integer(0, 99) < free_chance ? 0 : -random.integer(0, 6000));
  };
  for (int k = 1; k <= M; ++k) {
    words.entry[k - 1] = static_cast<std::int16_t>(-random.integer(0, 9000));
    if (k == M) break;
    words.mm_in[k] = cost(50), words.im_in[k] = cost(20), words.dm_in[k] = cost(20);
    words.md_out[k - 1] = cost(10), words.mi_out[k - 1] = cost(10), words.dd_out[k - 1] = cost(40);
    words.ii_out[k - 1] = std::min(cost(10), std::int16_t{-1});
  }
  return words;
}

Hmm random_hmm(Random& random, Lengths lengths, ModelKind kind) {
  const int M = random.integer(lengths.least, lengths.most);
  return random_hmm(random.next(), M, kind);
}

std::vector<Residue> random_target(Random& random, Lengths lengths, TargetKind kind,
                                   const Hmm& hmm) {
  const int L = random.integer(lengths.least, lengths.most);
  return random_target(random.next(), L, kind, hmm);
}

std::vector<Residue> random_target(std::uint64_t seed, int L, TargetKind kind, const Hmm& hmm) {
  Random random(seed * 15485863u + static_cast<std::uint64_t>(L) * 17u +
                static_cast<std::uint64_t>(kind));
  const Alphabet& alphabet = *hmm.alphabet;
  const auto K = static_cast<std::size_t>(alphabet.K);
  const std::span<const float> background(alphabet.background.data(), K);
  const auto length = static_cast<std::size_t>(L);
  std::vector<Residue> residues;
  residues.reserve(length);
  const Residue first = draw(random, background), second = draw(random, background);
  while (residues.size() < length) {
    switch (kind) {
      case TargetKind::kBackground:
        residues.push_back(draw(random, background));
        break;
      case TargetKind::kUniformCodes:
        residues.push_back(static_cast<Residue>(random.integer(0, alphabet.Kp - 1)));
        break;
      case TargetKind::kLowComplexity:
        residues.push_back(random.chance(0.9) ? first : second);
        break;
      case TargetKind::kNonresidue: {
        const int codes[] = {alphabet.gap(), alphabet.nonresidue(), alphabet.missing()};
        residues.push_back(static_cast<Residue>(codes[random.integer(0, 2)]));
        break;
      }
      case TargetKind::kHomologous:
      case TargetKind::kTandem: {
        const bool whole = kind == TargetKind::kTandem;
        int from = 1, to = hmm.M;
        if (!whole) {
          for (int n = random.integer(0, 60); n > 0; --n)
            residues.push_back(draw(random, background));
          from = random.integer(1, hmm.M), to = random.integer(from, hmm.M);
        }
        for (int k = from; k <= to; ++k) {
          if (!whole && random.chance(0.05)) continue;
          if (!whole && random.chance(0.05)) residues.push_back(draw(random, background));
          residues.push_back(random.chance(whole ? 0.99 : 0.6)
                                 ? alphabet.digit[static_cast<unsigned char>(hmm.consensus[k - 1])]
                                 : draw(random, background));
        }
        break;
      }
    }
  }
  residues.resize(length);
  return residues;
}

}  // namespace hmmjit::test_support
