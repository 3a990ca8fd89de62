#include "nucleotide/windows.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/threads.hpp"
#include "model/score_statistics.hpp"

namespace hmmjit::nucleotide {
namespace {

constexpr double kLn2 = 0.69314718055994529;
// N, C and J loops over a whole target, in nats.
constexpr double kLoops = 3.0;
constexpr std::int64_t kLongestWindow = 80000, kLongestOverlap = 40000;

// Converts doubles like x86, HMMER's processor.
int to_int(double x) {
  return x > -2147483649.0 && x < 2147483648.0 ? static_cast<int>(x)
                                               : std::numeric_limits<int>::min();
}

// The score with a given P-value in a Gumbel distribution.
float inverse_gumbel(double P, float mu, float lambda) {
  const double log_p = P < 5e-9 ? (std::pow(P, P) - 1) / P : std::log(-std::log(1 - P));
  return static_cast<float>(static_cast<double>(mu) - log_p / static_cast<double>(lambda));
}

reference::SsvScan ssv_scan_of(const SearchModel& model, int W, double F1) {
  const ByteProfile& bytes = model.bytes;
  const Calibration& c = model.hmm.calibration;
  const int tjb = bytes.tjb(W);
  const auto nats = static_cast<double>(inverse_gumbel(F1, c.msv_mu, c.msv_lambda)) * kLn2;
  const double score =
      (static_cast<double>(null_score(W)) + nats + kLoops) * static_cast<double>(bytes.scale);
  const double threshold = std::ceil(score + bytes.base + bytes.tec + tjb);
  return {.threshold = static_cast<std::uint8_t>(to_int(threshold)),
          .begin = std::max(bytes.base - static_cast<std::uint8_t>(tjb + bytes.tbm), 0),
          .floor = bytes.base - tjb - bytes.tbm};
}

// A node's share of the window: the insert length exceeded with a probability of 1e-7.
void spread_window(const OddsProfile& odds, std::vector<float>& before, std::vector<float>& after) {
  const int M = odds.M;
  before.assign(static_cast<std::size_t>(M) + 2, 0.0f);
  after = before;
  float sum = 0;
  for (int k = 1; k < M; ++k) {
    const float into = odds.mi_out[k - 1], stay = odds.ii_out[k - 1];
    const int length = into == 0 ? 1
                                 : 1 + to_int(std::log(1e-7 / static_cast<double>(into)) /
                                              std::log(static_cast<double>(stay)));
    before[k] = static_cast<float>(length);
    sum += before[k];
  }
  for (int k = 1; k < M; ++k) before[k] /= sum;
  after[M] = before[M - 1];
  for (int k = M - 1; k >= 1; --k) after[k] = after[k + 1] + before[k - 1];
  for (int k = 2; k < M; ++k) before[k] += before[k - 1];
}

// Appends the window around a diagonal of a sequence of L residues. Its length may be negative, as
// lengths of spread_window() are in models with very rare inserts.
void add_extended(std::vector<Window>& windows, const WindowModel& model,
                  const reference::Diagonal& d, std::int64_t L, std::size_t sequence,
                  std::size_t group) {
  const auto share = [](const std::vector<float>& of_node, int k) {
    return static_cast<double>(
        of_node[static_cast<std::size_t>(std::min(k, static_cast<int>(of_node.size()) - 1))]);
  };
  const double W = model.W;
  const double first =
      static_cast<double>(d.first) - W * (0.1 + share(model.before, d.last_node - d.length + 1));
  const double last =
      static_cast<double>(d.first + d.length) + W * (0.1 + share(model.after, d.last_node));
  // Lengths that add up to zero give infinite and undefined shares.
  constexpr double kFar = 1e15;
  const auto start = first > 1 ? static_cast<std::int64_t>(std::min(first, kFar)) : 1;
  const auto end =
      last < static_cast<double>(L) ? static_cast<std::int64_t>(std::max(last, -kFar)) : L;
  windows.push_back({sequence, start, end - start + 1, group});
}

// From `from` on, merges neighbours of one sequence that overlap by more than `share` of the
// shorter one, also if lengths and overlap are negative. Then drops windows without residues.
void merge(std::vector<Window>& windows, std::size_t from, float share) {
  if (windows.size() == from) return;
  std::size_t last = from;
  for (std::size_t n = from + 1; n < windows.size(); ++n) {
    Window& merged = windows[last];
    const Window& next = windows[n];
    const std::int64_t start = std::min(merged.start, next.start);
    const std::int64_t end = std::max(merged.end(), next.end());
    const auto overlap = static_cast<float>(static_cast<std::int32_t>(
        std::min(merged.end(), next.end()) - std::max(merged.start, next.start)));
    if (overlap / static_cast<float>(std::min(merged.length, next.length)) > share) {
      merged.start = start;
      merged.length = end - start;
    } else {
      windows[++last] = next;
    }
  }
  windows.resize(last + 1);
  windows.erase(std::remove_if(windows.begin() + static_cast<std::ptrdiff_t>(from), windows.end(),
                               [](const Window& w) { return w.length < 1; }),
                windows.end());
}

std::vector<Window> ssv_windows(WindowModel& model, Sequences sequences,
                                const std::vector<cpu::MarkedRows>* marked,
                                cpu::FilterScratch& scratch, CoreClock& clock, Times& times) {
  std::vector<cpu::FoundDiagonal> found;
  model.tables.ssv_scan(model.model.bytes, model.ssv, sequences, scratch, found, marked);
  std::uint64_t scanned = 0;
  if (marked == nullptr)
    for (const auto& sequence : sequences) scanned += sequence.size();
  else
    for (const cpu::MarkedRows& rows : *marked) scanned += rows.last - rows.first;
  times.ssv += {clock.lap(), scanned * static_cast<std::uint64_t>(model.model.hmm.M)};
  if (!found.empty()) model.complete();
  times.setup_seconds += clock.lap();
  std::vector<Window> windows;
  for (auto d = found.begin(); d != found.end();) {
    const std::size_t from = windows.size(), sequence = d->target;
    const auto L = static_cast<std::int64_t>(sequences[sequence].size());
    for (; d != found.end() && d->target == sequence; ++d)
      add_extended(windows, model, d->diagonal, L, sequence, 0);
    merge(windows, from, 0.0f);
  }
  return windows;
}

// P-value in the distribution of MSV scores.
double msv_survival(const Calibration& c, double bits) {
  return gumbel_survival(bits, static_cast<double>(c.msv_mu), static_cast<double>(c.msv_lambda));
}

std::uint64_t residues_of(std::span<const Candidate> candidates) {
  std::uint64_t sum = 0;
  for (const Candidate& c : candidates) sum += static_cast<std::uint64_t>(c.window.length);
  return sum;
}

std::vector<Candidate> msv_candidates(WindowModel& model, double F1, Sequences sequences,
                                      const std::vector<cpu::MarkedRows>* marked,
                                      cpu::FilterScratch& scratch, CoreClock& clock, Times& times) {
  std::vector<Candidate> candidates;
  for (const Window& window : ssv_windows(model, sequences, marked, scratch, clock, times))
    candidates.push_back({window});
  const auto views = views_of(candidates, sequences);
  std::vector<reference::SsvResult> scores(views.size());
  model.tables.ssv_batch(views, scores, scratch);
  for (std::size_t n = 0; n < views.size(); ++n) {
    candidates[n].msv_nats = scores[n].status == reference::SsvStatus::kNoResult
                                 ? model.tables.msv_recurrence(views[n], scratch)
                                 : scores[n].nats;
  }
  times.msv +=
      {clock.lap(), residues_of(candidates) * static_cast<std::uint64_t>(model.model.hmm.M)};
  std::erase_if(candidates, [&](const Candidate& c) {
    // HMMER rounds the P-value to float here, but not the bits.
    const float nats = c.msv_nats - null_score(c.length());
    const auto P = static_cast<float>(
        msv_survival(model.model.hmm.calibration, static_cast<double>(nats) / kLn2));
    return static_cast<double>(P) > F1;
  });
  return candidates;
}

void filter_by_bias(const WindowModel& model, const Options& options, Sequences sequences,
                    std::vector<Candidate>& candidates) {
  std::vector<float> scores(candidates.size());
  model.tables.bias_filter_batch(views_of(candidates, sequences), scores);
  for (std::size_t n = 0; n < scores.size(); ++n)
    candidates[n].bias_nats = scores[n] - null_score(candidates[n].length());
  std::erase_if(candidates, [&](const Candidate& c) {
    const float filter_nats =
        null_score(c.length()) + c.bias_nats * bias_share(c.length(), options.B1);
    const float bits = nats_to_bits(c.msv_nats - filter_nats);
    return msv_survival(model.model.hmm.calibration, static_cast<double>(bits)) > options.F1;
  });
}

// The word that a cell must reach. Wraps around, as in HMMER.
int viterbi_threshold(const WindowModel& model, const Candidate& c, int length, int move, int B2) {
  const auto filter_nats = static_cast<float>(static_cast<double>(null_score(length)) +
                                              static_cast<double>(c.bias_nats) *
                                                  static_cast<double>(bias_share(c.length(), B2)));
  const WordProfile& words = model.model.words;
  const double score =
      static_cast<double>(filter_nats) + kLn2 * static_cast<double>(model.viterbi_nats) + kLoops;
  const double threshold =
      std::ceil(score * static_cast<double>(words.scale) - words.ec - move + words.base);
  return static_cast<std::int16_t>(to_int(threshold));
}

// Splits long windows from `from` on, and appends the rest of each to the list.
void split_long(std::vector<Window>& windows, std::size_t from, int W) {
  const std::int64_t step = kLongestWindow - std::min<std::int64_t>(kLongestOverlap, W);
  const std::size_t count = windows.size();
  for (std::size_t n = from; n < count; ++n) {
    if (windows[n].length <= kLongestWindow) continue;
    Window part = windows[n];
    windows[n].length = kLongestWindow;
    std::int64_t rest = part.length;
    do {
      part.start += step;
      rest -= step;
      part.length = std::min(kLongestWindow, rest);
      windows.push_back(part);
    } while (rest > kLongestWindow);
  }
}

// Appends windows around cells that Viterbi finds in a candidate. Returns their number of residues.
std::uint64_t add_viterbi_windows(const WindowModel& model, const Candidate& c, std::size_t group,
                                  int move, int threshold, Sequences sequences,
                                  cpu::FilterScratch& scratch,
                                  std::vector<reference::Diagonal>& records,
                                  std::vector<Window>& windows) {
  model.tables.viterbi_scan(model.model.words, move, threshold,
                            c.window.part_of(sequences[c.window.sequence]), scratch, records);
  const std::size_t from = windows.size();
  for (const reference::Diagonal& cell : records)
    add_extended(windows, model, cell, c.window.length, c.window.sequence, group);
  merge(windows, from, 0.5f);
  split_long(windows, from, model.W);
  std::int64_t covered = 0;
  for (std::size_t n = from; n < windows.size(); ++n) {
    covered += windows[n].length;
    if (n > from) covered -= std::max<std::int64_t>(0, windows[n - 1].end() - windows[n].start);
  }
  for (std::size_t n = from; n < windows.size(); ++n) windows[n].start += c.window.start - 1;
  return static_cast<std::uint64_t>(covered);
}

}  // namespace

WindowModel::WindowModel(const Query& query, const Options& options)
    : model(*query.model),
      W(query.window_length),
      tables(model),
      ssv(ssv_scan_of(model, W, options.F1)) {
  const FlushToZeroScope flush;
  const Calibration& c = model.hmm.calibration;
  viterbi_nats = inverse_gumbel(options.F2, c.viterbi_mu, c.viterbi_lambda);
}

void WindowModel::complete() {
  std::call_once(completed, [&] {
    const FlushToZeroScope flush;
    hmmjit::complete(model);
    tables.add_words(model.words);
    spread_window(model.odds, before, after);
  });
}

std::vector<std::span<const Residue>> views_of(std::span<const Candidate> candidates,
                                               Sequences sequences) {
  std::vector<std::span<const Residue>> views;
  for (const Candidate& c : candidates)
    views.push_back(c.window.part_of(sequences[c.window.sequence]));
  return views;
}

std::vector<Candidate> find_candidates(WindowModel& model, const Options& options,
                                       Sequences sequences,
                                       const std::vector<cpu::MarkedRows>* marked,
                                       cpu::FilterScratch& scratch, FilterCounters& counters,
                                       Times& times) {
  CoreClock clock;
  std::vector<Candidate> candidates =
      msv_candidates(model, options.F1, sequences, marked, scratch, clock, times);
  const std::uint64_t past_msv = residues_of(candidates);
  counters.msv += past_msv;
  if (options.bias) filter_by_bias(model, options, sequences, candidates);
  times.bias += {clock.lap(), past_msv};
  counters.bias += residues_of(candidates);
  return candidates;
}

std::vector<Window> find_windows(const WindowModel& model, const Options& options,
                                 Sequences sequences, std::span<const Candidate> candidates,
                                 std::span<const int> best, cpu::FilterScratch& scratch,
                                 FilterCounters& counters, Times& times) {
  CoreClock clock;
  std::vector<Window> windows;
  std::vector<reference::Diagonal> records;
  std::uint64_t scanned = 0;
  for (std::size_t n = 0; n < candidates.size(); ++n) {
    const Candidate& c = candidates[n];
    const int length = viterbi_length(c.window.length, model.W);
    const int move = model.model.words.move(length);
    const int threshold = viterbi_threshold(model, c, length, move, options.B2);
    if (!best.empty() && best[n] < threshold) continue;
    counters.viterbi +=
        add_viterbi_windows(model, c, n, move, threshold, sequences, scratch, records, windows);
    scanned += static_cast<std::uint64_t>(c.window.length);
  }
  times.viterbi += {clock.lap(), scanned * static_cast<std::uint64_t>(model.model.hmm.M)};
  return windows;
}

}  // namespace hmmjit::nucleotide
