#include "align/log_space.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "model/numeric.hpp"

namespace hmmjit::align {
namespace {

using build::Step;

constexpr float kNever = -std::numeric_limits<float>::infinity();

// Cells of all rows. Paths enter the model only from N and leave it only to C.
struct Matrix {
  Matrix(int L, int M) : width(static_cast<std::size_t>(M) + 1) {
    const std::size_t rows = static_cast<std::size_t>(L) + 1;
    for (auto* const cells : {&match, &insert, &deletion}) cells->assign(rows * width, kNever);
    for (auto* const states : {&E, &N, &B, &C}) states->assign(rows, kNever);
  }
  float& M(int i, int k) { return match[i * width + k]; }
  float& I(int i, int k) { return insert[i * width + k]; }
  float& D(int i, int k) { return deletion[i * width + k]; }

  std::size_t width;
  std::vector<float> match, insert, deletion, E, N, B, C;
};

class Aligner {
 public:
  Aligner(const Profile& profile, std::span<const Residue> residues)
      : p_(profile),
        residues_(residues),
        L_(static_cast<int>(residues.size())),
        M_(profile.M),
        forward_(L_, M_),
        backward_(L_, M_) {
    const LengthModel length = length_model(L_, false);
    loop_ = static_cast<float>(std::log(static_cast<double>(length.loop)));
    move_ = static_cast<float>(std::log(static_cast<double>(length.move)));
  }

  SequencePath align() {
    run_forward();
    run_backward();
    decode();
    maximise();
    return trace();
  }

 private:
  float t(Transition a, int k) const { return p_.transition[a][static_cast<std::size_t>(k)]; }
  float entry(int k) const { return p_.entry[static_cast<std::size_t>(k)]; }
  // Scores of emitting residue i.
  float match(int i, int k) const { return p_.match_score(residues_[i - 1], k); }
  float insert(int i) const {
    const Residue code = residues_[i - 1];
    return p_.alphabet->is_residue(code) || p_.alphabet->is_degenerate(code) ? 0.0f : kNever;
  }

  static float log_sum(float a, float b) { return table_log_sum(a, b); }

  void run_forward() {
    Matrix& f = forward_;
    f.N[0] = 0;
    f.B[0] = move_;
    for (int i = 1; i <= L_; ++i) {
      for (int k = 1; k <= M_; ++k) {
        const float from_states = log_sum(f.M(i - 1, k - 1) + t(kMM, k - 1),  //
                                          f.I(i - 1, k - 1) + t(kIM, k - 1));
        const float from_others = log_sum(f.B[i - 1] + entry(k), f.D(i - 1, k - 1) + t(kDM, k - 1));
        f.M(i, k) = log_sum(from_states, from_others) + match(i, k);
        f.I(i, k) = log_sum(f.M(i - 1, k) + t(kMI, k), f.I(i - 1, k) + t(kII, k)) + insert(i);
        f.D(i, k) = log_sum(f.M(i, k - 1) + t(kMD, k - 1), f.D(i, k - 1) + t(kDD, k - 1));
        f.E[i] = log_sum(log_sum(f.M(i, k), f.D(i, k)), f.E[i]);
      }
      f.C[i] = log_sum(f.C[i - 1] + loop_, f.E[i]);
      f.N[i] = f.N[i - 1] + loop_;
      f.B[i] = f.N[i] + move_;
    }
  }

  void run_backward() {
    Matrix& b = backward_;
    for (int i = L_; i >= 1; --i) {
      const bool last = i == L_;
      b.C[i] = last ? move_ : b.C[i + 1] + loop_;
      const float E = b.C[i];
      if (!last) {
        b.B[i] = b.M(i + 1, 1) + entry(1) + match(i + 1, 1);
        for (int k = 2; k <= M_; ++k)
          b.B[i] = log_sum(b.B[i], b.M(i + 1, k) + entry(k) + match(i + 1, k));
        b.N[i] = log_sum(b.N[i + 1] + loop_, b.B[i] + move_);
      }
      b.M(i, M_) = b.D(i, M_) = E;
      for (int k = M_ - 1; k >= 1; --k) {
        const float ends = log_sum(E, b.D(i, k + 1) + t(kMD, k));
        const float deleted = log_sum(b.D(i, k + 1) + t(kDD, k), E);
        if (last) {
          b.M(i, k) = ends;
          b.D(i, k) = deleted;
          continue;
        }
        const float emit = b.M(i + 1, k + 1), insertion = b.I(i + 1, k);
        const float score = match(i + 1, k + 1), score_i = insert(i + 1);
        b.M(i, k) =
            log_sum(log_sum(emit + t(kMM, k) + score, insertion + t(kMI, k) + score_i), ends);
        b.I(i, k) = log_sum(emit + t(kIM, k) + score, insertion + t(kII, k) + score_i);
        b.D(i, k) = log_sum(emit + t(kDM, k) + score, deleted);
      }
    }
  }

  // Replaces Backward's cells by posteriors, which sum to one in each row.
  void decode() {
    Matrix &f = forward_, &p = backward_;
    const float all = f.C[L_] + move_;
    for (int i = 1; i <= L_; ++i) {
      float sum = 0;
      for (int k = 1; k <= M_; ++k) {
        sum += p.M(i, k) = std::exp(f.M(i, k) + p.M(i, k) - all);
        if (k == M_) break;
        sum += p.I(i, k) = std::exp(f.I(i, k) + p.I(i, k) - all);
      }
      p.N[i] = std::exp(f.N[i - 1] + p.N[i] + loop_ - all);
      p.C[i] = std::exp(f.C[i - 1] + p.C[i] + loop_ - all);
      sum += p.N[i] + p.C[i];
      const auto norm = static_cast<float>(1.0 / static_cast<double>(sum));
      for (int k = 1; k <= M_; ++k) {
        p.M(i, k) *= norm;
        p.I(i, k) *= norm;
      }
      p.N[i] *= norm;
      p.C[i] *= norm;
    }
  }

  // Accuracy of a path into a cell; almost zero for an impossible transition.
  static double way(float transition, float value) {
    return transition == kNever ? static_cast<double>(FLT_MIN) * static_cast<double>(value)
                                : static_cast<double>(value);
  }

  static float rank(float transition, float value) {
    return static_cast<float>(way(transition, value));
  }

  // Replaces Forward's cells by the greatest accuracies.
  void maximise() {
    Matrix &a = forward_, &p = backward_;
    a.N[0] = 0;
    for (int i = 1; i <= L_; ++i) {
      a.E[i] = kNever;
      for (int k = 1; k <= M_; ++k) {
        const float here = p.M(i, k);
        a.M(i, k) =
            static_cast<float>(std::max(std::max(way(t(kMM, k - 1), a.M(i - 1, k - 1) + here),
                                                 way(t(kIM, k - 1), a.I(i - 1, k - 1) + here)),
                                        std::max(way(t(kDM, k - 1), a.D(i - 1, k - 1) + here),
                                                 way(entry(k), a.N[i - 1] + here))));
        a.E[i] = std::max(a.E[i], a.M(i, k));
        a.D(i, k) = static_cast<float>(
            std::max(way(t(kMD, k - 1), a.M(i, k - 1)), way(t(kDD, k - 1), a.D(i, k - 1))));
        if (k == M_) break;
        a.I(i, k) = static_cast<float>(std::max(way(t(kMI, k), a.M(i - 1, k) + p.I(i, k)),
                                                way(t(kII, k), a.I(i - 1, k) + p.I(i, k))));
      }
      a.E[i] = std::max(a.E[i], a.D(i, M_));
      a.C[i] = std::max(a.C[i - 1] + p.C[i], a.E[i]);
      a.N[i] = a.N[i - 1] + p.N[i];
    }
  }

  SequencePath trace() {
    Matrix &a = forward_, &p = backward_;
    SequencePath path;
    const auto add = [&path](Step step, int k, int i, float posterior) {
      path.elements.push_back({step, k, static_cast<std::uint32_t>(std::max(i - 1, 0))});
      path.posteriors.push_back(posterior);
    };
    add(Step::kEnd, 0, 0, 0);
    int i = L_;
    for (; i > 0 && a.C[i - 1] + p.C[i] > a.E[i]; --i) add(Step::kInsert, M_, i, p.C[i]);
    Step state = Step::kMatch;
    int k = 0;
    float best = kNever;
    for (int node = 1; node <= M_; ++node) {
      if (a.M(i, node) >= best) best = a.M(i, node), k = node, state = Step::kMatch;
      if (a.D(i, node) > best) best = a.D(i, node), k = node, state = Step::kDelete;
    }
    while (i > 0 && k > 0 && state != Step::kBegin) {
      if (state == Step::kMatch) {
        add(Step::kMatch, k, i, p.M(i, k));
        --i;
        --k;
        state = source_of_match(i, k);
      } else if (state == Step::kInsert) {
        add(Step::kInsert, k, i, p.I(i, k));
        --i;
        if (rank(t(kMI, k), a.M(i, k)) >= rank(t(kII, k), a.I(i, k))) state = Step::kMatch;
      } else {
        add(Step::kDelete, k, 0, 0);
        --k;
        if (rank(t(kMD, k), a.M(i, k)) >= rank(t(kDD, k), a.D(i, k))) state = Step::kMatch;
      }
    }
    if (state != Step::kBegin) return {};  // outside the matrix: no path
    for (; i > 0; --i) add(Step::kInsert, 0, i, p.N[i]);
    add(Step::kBegin, 0, 0, 0);
    std::ranges::reverse(path.elements);
    std::ranges::reverse(path.posteriors);
    return path;
  }

  // The predecessor of the match state at (i + 1, k + 1); among equal ones, the first.
  Step source_of_match(int i, int k) {
    Matrix& a = forward_;
    const std::pair<Step, float> ways[] = {{Step::kMatch, rank(t(kMM, k), a.M(i, k))},
                                           {Step::kInsert, rank(t(kIM, k), a.I(i, k))},
                                           {Step::kDelete, rank(t(kDM, k), a.D(i, k))},
                                           {Step::kBegin, rank(entry(k + 1), a.N[i])}};
    return std::ranges::max_element(ways, {}, &std::pair<Step, float>::second)->first;
  }

  const Profile& p_;
  std::span<const Residue> residues_;
  int L_, M_;
  float loop_ = 0, move_ = 0;
  Matrix forward_, backward_;
};

}  // namespace

SequencePath align_in_log_space(const Profile& profile, std::span<const Residue> residues) {
  return Aligner(profile, residues).align();
}

}  // namespace hmmjit::align
