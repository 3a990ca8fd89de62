#include "domain/alignment.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>

namespace hmmjit::domain {
namespace {

constexpr float kNone = -std::numeric_limits<float>::infinity();

char posterior_code(float p) {
  const double rounded = static_cast<double>(p) + 0.05;
  if (rounded >= 1.0) return '*';
  return static_cast<char>('0' + static_cast<int>(std::floor(rounded * 10.0)));
}

}  // namespace

void Aligner::trace(const AccuracyMatrices& a) {
  const ForwardTables::Tables& t = *a.tables;
  const Job& job = *a.job;
  const AccuracyRow* special = job.accuracy;
  const int Q = t.Q;
  const auto value = [&](int i, int k, CellState state) {
    return k > 0 ? a.accuracy[static_cast<std::size_t>(i) * a.layout.row +
                              static_cast<std::size_t>(t.stripe_of(k)) * a.layout.stripe +
                              static_cast<std::size_t>(state) * a.layout.state +
                              static_cast<std::size_t>(t.lane_of(k))]
                 : 0.0f;
  };
  const auto posterior = [&](int i, int k, CellState state) {
    return a.product[static_cast<std::size_t>(i) * a.layout.row +
                     static_cast<std::size_t>(t.stripe_of(k)) * a.layout.stripe +
                     static_cast<std::size_t>(state) * a.layout.state +
                     static_cast<std::size_t>(t.lane_of(k))] *
           job.factor[i];
  };
  const auto if_possible = [](float odds, float v) { return odds > 0 ? v : kNone; };

  path_.clear();
  enum class At { kC, kJ, kE, kM, kD, kI, kB };
  At state = At::kC;
  int i = job.L;
  int k = 0;
  for (;;) {
    switch (state) {
      case At::kC: {
        const float stay =
            i > 0 ? if_possible(job.loop, special[i - 1].C + special[i].posterior_c) : kNone;
        if (stay > special[i].E) {
          --i;
        } else {
          state = At::kE;
        }
        break;
      }
      case At::kJ: {
        // The unihit model never enters J from E, so J can only be left at the first residue.
        const float stay =
            i > 0 ? if_possible(job.loop, special[i - 1].J + special[i].posterior_j) : kNone;
        if (stay > kNone) {
          --i;
        } else {
          state = At::kE;
        }
        break;
      }
      case At::kE: {
        path_.clear();
        float best = kNone;
        bool match = true;
        k = 0;
        for (int q = 0; q < Q; ++q) {
          const float* cell = a.accuracy + static_cast<std::size_t>(i) * a.layout.row +
                              static_cast<std::size_t>(q) * a.layout.stripe;
          for (int r = 0; r < kLanes; ++r) {
            if (cell[r] >= best) {
              best = cell[r];
              match = true;
              k = r * Q + q + 1;
            }
          }
          cell += a.layout.state;
          for (int r = 0; r < kLanes; ++r) {
            if (cell[r] > best) {
              best = cell[r];
              match = false;
              k = r * Q + q + 1;
            }
          }
        }
        // A padding cell can win only where every cell is zero.
        if (k > t.M || i == 0) return path_.clear();
        state = match ? At::kM : At::kD;
        break;
      }
      case At::kM: {
        path_.push_back({State::kM, i, k, posterior_code(posterior(i, k, kCellM))});
        const NodeTransitions& n = t.nodes[static_cast<std::size_t>(k)];
        const float from[4] = {if_possible(n.mm_in, value(i - 1, k - 1, kCellM)),
                               if_possible(n.im_in, value(i - 1, k - 1, kCellI)),
                               if_possible(n.dm_in, value(i - 1, k - 1, kCellD)),
                               if_possible(n.bm, special[i - 1].B)};
        static constexpr At kNext[4] = {At::kM, At::kI, At::kD, At::kB};
        state = kNext[std::max_element(from, from + 4) - from];
        --i;
        --k;
        if ((i == 0 || k == 0) && state != At::kB) return path_.clear();
        break;
      }
      case At::kD: {
        path_.push_back({State::kD, i, k, '.'});
        const NodeTransitions& n = t.nodes[static_cast<std::size_t>(k)];
        state = if_possible(n.md_in, value(i, k - 1, kCellM)) >=
                        if_possible(n.dd_in, value(i, k - 1, kCellD))
                    ? At::kM
                    : At::kD;
        if (--k == 0) return path_.clear();
        break;
      }
      case At::kI: {
        path_.push_back({State::kI, i, k, posterior_code(posterior(i, k, kCellI))});
        const NodeTransitions& n = t.nodes[static_cast<std::size_t>(k)];
        state =
            if_possible(n.mi, value(i - 1, k, kCellM)) >= if_possible(n.ii, value(i - 1, k, kCellI))
                ? At::kM
                : At::kI;
        if (--i == 0) return path_.clear();
        break;
      }
      case At::kB:
        if (special[i].N > special[i].J || i == 0) return;  // N leads to S without alternatives
        state = At::kJ;
        break;
    }
  }
}

bool Aligner::align(const AccuracyMatrices& matrices, const Hmm& hmm, Domain& domain) {
  trace(matrices);
  return show(*matrices.tables, matrices.job->residues, hmm, domain);
}

bool Aligner::align(const ForwardTables::Tables& tables, const Residue* residues,
                    const ScoredEnvelope& found, const Hmm& hmm, Domain& domain) {
  path_.clear();
  int i = found.last_row, k = found.last_node;
  for (const std::uint8_t step : found.path) {
    const int tenths = step >> 2;
    const char code = tenths >= 10 ? '*' : static_cast<char>('0' + tenths);
    switch (step & 3u) {
      case 0:
        path_.push_back({State::kM, i--, k--, code});
        break;
      case 1:
        path_.push_back({State::kD, i, k--, '.'});
        break;
      default:
        path_.push_back({State::kI, i--, k, code});
        break;
    }
  }
  return show(tables, residues, hmm, domain);
}

bool Aligner::show(const ForwardTables::Tables& t, const Residue* residues, const Hmm& hmm,
                   Domain& domain) {
  const auto is_match = [](const Element& e) { return e.state == State::kM; };
  // The path runs backwards: its reverse is the order of display.
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
    const auto node = static_cast<std::size_t>(e->k - 1);
    const bool insert = e->state == State::kI;
    if (!hmm.rf.empty()) a.rf += insert ? '.' : hmm.rf[node];
    if (!hmm.cs.empty()) a.cs += insert ? '.' : hmm.cs[node];
    const int x = e->state == State::kD ? 0 : residues[e->i - 1];
    const char symbol = alphabet.symbols[static_cast<std::size_t>(x)];
    switch (e->state) {
      case State::kM: {
        const char consensus = hmm.consensus[node];
        a.model += consensus;
        const float odds = t.match_row(x)[static_cast<std::size_t>(t.stripe_of(e->k)) * kLanes +
                                          static_cast<std::size_t>(t.lane_of(e->k))];
        if (alphabet.digit[static_cast<unsigned char>(consensus)] == x) {
          a.match += consensus;
        } else {
          a.match += odds > 1.0f ? '+' : ' ';
        }
        a.sequence += static_cast<char>(std::toupper(static_cast<unsigned char>(symbol)));
        a.pp += e->posterior;
        break;
      }
      case State::kI:
        a.model += '.';
        a.match += ' ';
        a.sequence += static_cast<char>(std::tolower(static_cast<unsigned char>(symbol)));
        a.pp += e->posterior;
        break;
      case State::kD:
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
