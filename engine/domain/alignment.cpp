#include "domain/alignment.hpp"

#include <algorithm>
#include <cmath>

#include "core/ascii.hpp"

namespace hmmjit::domain {

using enum PathState::State;

char posterior_code(float p) {
  const double rounded = static_cast<double>(p) + 0.05;
  if (rounded >= 1.0) return '*';
  if (std::isnan(rounded)) return '0';  // as HMMER's conversion to int gives
  return static_cast<char>('0' + static_cast<int>(std::floor(rounded * 10.0)));
}

bool chose(const AccuracyChoices& a, Choice choice, int i, int k) {
  const std::size_t row =
      static_cast<std::size_t>(a.job.start + i) * a.kernel.choice_row(a.tables.Q);
  const int bit = a.kernel.first_bit[static_cast<std::size_t>(a.job.group)] + a.tables.lane_of(k);
  const int byte = (a.tables.stripe_of(k) * kChoices + choice) * a.kernel.mask_bytes + bit / 8;
  return (a.space.choices[row + static_cast<std::size_t>(byte)] >> (bit % 8) & 1) != 0;
}

float posterior(const AccuracyChoices& a, bool insert, int i, int k) {
  const HotCells& hot = a.space.hot;
  const auto row = static_cast<std::size_t>(a.job.start + i);
  const int cell = 2 * a.tables.stripe_of(k) + insert;
  const auto end = hot.cells.data() + hot.row_begin[row + 1];
  const auto found = std::find(hot.cells.data() + hot.row_begin[row], end, cell);
  if (found == end) return 0;
  const std::ptrdiff_t vector = (found - hot.cells.data()) * a.lanes.groups + a.job.group;
  return hot.values.data()[vector * kLanes + a.tables.lane_of(k)];
}

namespace {

// True if B in row i follows N rather than J. The unihit model never enters J from E, so J has
// value 0 and N the sum of its residues' posteriors.
bool begins_from_N(const AccuracyChoices& a, int i) {
  if (i == 0) return true;
  const SpecialRows forward = a.lanes.forward_of(a.job), backward = a.lanes.backward_of(a.job);
  auto scale = inverse_of(backward[0].N);
  for (int r = 1; r <= i; ++r) {
    if (forward[r - 1].N * backward[r].N * a.job.loop * scale > 0) return true;
    if (a.job.own_scale) scale *= forward[r].scale / backward[r].scale;
  }
  return false;
}

}  // namespace

void trace(const AccuracyChoices& a, std::vector<PathState>& path) {
  path.clear();
  PathState::State state = kM;
  int i = a.job.decoded.exit_row, k = a.job.decoded.exit_node;
  while (i > 0 && k > 0) {
    switch (state) {
      case kM:
        path.push_back({kM, i, k, posterior(a, false, i, k)});
        if (chose(a, kFromBegin, i, k)) {
          if (begins_from_N(a, i - 1)) return;
          // J can only be left at the first residue: the path starts over there, in the first
          // domain on the target.
          path.clear();
          i = 1;
          k = a.job.decoded.first_node;
          break;
        }
        if (chose(a, kFromDeletion, i, k)) {
          state = kD;
        } else if (chose(a, kFromInsert, i, k)) {
          state = kI;
        }
        --i;
        --k;
        break;
      case kD:
        path.push_back({kD, i, k, 0.0f});
        --k;
        if (k > 0 && !chose(a, kStayDeletion, i, k)) state = kM;
        break;
      case kI:
        path.push_back({kI, i, k, posterior(a, true, i, k)});
        if (!chose(a, kStayInsert, i, k)) state = kM;
        --i;
        break;
    }
  }
  path.clear();  // off the matrix: no path
}

bool Aligner::align(const AccuracyChoices& choices, const Hmm& hmm, Domain& domain) {
  trace(choices, path_);
  const Job& job = choices.job;
  return show(choices.tables, *choices.lanes.emission, job.first_row, job.residues, hmm, domain);
}

bool Aligner::align(const ForwardTables::Tables& tables, const EmissionRows& emission,
                    int first_row, const Residue* residues, const ScoredEnvelope& found,
                    const Hmm& hmm, Domain& domain) {
  path_.clear();
  int i = found.last_row, k = found.last_node;
  for (const std::uint8_t step : found.path) {
    const float tenths = 0.1f * static_cast<float>(step >> 2);
    switch (step & 3u) {
      case 0:
        path_.push_back({kM, i--, k--, tenths});
        break;
      case 1:
        path_.push_back({kD, i, k--, 0.0f});
        break;
      default:
        path_.push_back({kI, i--, k, tenths});
        break;
    }
  }
  return show(tables, emission, first_row, residues, hmm, domain);
}

bool Aligner::show(const ForwardTables::Tables& t, const EmissionRows& emission, int first_row,
                   const Residue* residues, const Hmm& hmm, Domain& domain) {
  const auto is_match = [](const PathState& e) { return e.state == kM; };
  // The path runs backwards, so its reverse is the order of display.
  const auto begin = std::find_if(path_.rbegin(), path_.rend(), is_match);
  if (begin == path_.rend()) return false;
  const auto end = std::find_if(path_.begin(), path_.end(), is_match);
  const auto last = std::make_reverse_iterator(end);  // one past the last match
  const int offset = domain.ienv - 1;
  domain.iali = begin->i + offset;
  domain.jali = end->i + offset;
  domain.hmm_from = begin->k;
  domain.hmm_to = end->k;

  const Alphabet& alphabet = *t.alphabet;
  Alignment& a = domain.alignment;
  a = {};
  const auto columns = static_cast<std::size_t>(last - begin);
  for (std::string* line : {&a.model, &a.match, &a.sequence, &a.pp}) line->reserve(columns);
  if (!hmm.rf.empty()) a.rf.reserve(columns);
  if (!hmm.cs.empty()) a.cs.reserve(columns);
  for (auto e = begin; e != last; ++e) {
    const auto node = e->k - 1;
    const bool insert = e->state == kI;
    if (!hmm.rf.empty()) a.rf += insert ? '.' : hmm.rf[node];
    if (!hmm.cs.empty()) a.cs += insert ? '.' : hmm.cs[node];
    const int x = e->state == kD ? 0 : residues[e->i - 1];
    const char symbol = alphabet.symbols[static_cast<std::size_t>(x)];
    switch (e->state) {
      case kM: {
        const char consensus = hmm.consensus[node];
        a.model += consensus;
        const float* const row = emission.row(static_cast<std::size_t>(first_row + x), t.Q);
        const float odds = row[t.stripe_of(e->k) * kLanes + t.lane_of(e->k)];
        if (alphabet.digit[static_cast<unsigned char>(consensus)] == x) {
          a.match += consensus;
        } else {
          a.match += odds > 1.0f ? '+' : ' ';
        }
        a.sequence += ascii_upper(symbol);
        a.pp += posterior_code(e->posterior);
        break;
      }
      case kI:
        a.model += '.';
        a.match += ' ';
        a.sequence += ascii_lower(symbol);
        a.pp += posterior_code(e->posterior);
        break;
      case kD:
        a.model += hmm.consensus[node];
        a.match += ' ';
        a.sequence += '-';
        a.pp += '.';
        break;
    }
  }
  return true;
}

}  // namespace hmmjit::domain
