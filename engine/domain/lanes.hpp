// Sequences of one model, side by side in a vector and one after the other in each group of four
// lanes, with the special states of their rows.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/aligned.hpp"
#include "model/alphabet.hpp"
#include "model/profile.hpp"

namespace hmmjit::domain {

inline constexpr int kLanes = 4;
inline constexpr int kMaxGroups = 8;

/// Special states and scale factor of one row of Forward or Backward.
struct SpecialRow {
  float E, N, J, B, C, scale;
};

/// The special states of one job: four lanes in two vectors per row.
class SpecialRows {
 public:
  SpecialRows(const float* first, int groups, int start)
      : first_(first), width_(groups * kLanes), start_(start) {}
  SpecialRow operator[](int i) const {
    const float* const p = first_ + std::ptrdiff_t{start_ + i} * 2 * width_;
    return {p[0], p[1], p[2], p[3], p[width_], p[width_ + 1]};
  }
  /// Writes one group's special states to `row`.
  static void put(const SpecialRow& s, int groups, float* row) {
    row[0] = s.E, row[1] = s.N, row[2] = s.J, row[3] = s.B;
    row += groups * kLanes;
    row[0] = s.C, row[1] = s.scale;
  }

 private:
  const float* first_;
  int width_, start_;
};

/// An envelope as Kernels::decode leaves it.
struct DecodedEnvelope {
  bool sound = false;                    ///< false: the posteriors overflowed
  float accuracy = 0;                    ///< expected accuracy of the path
  int exit_row = 0, exit_node = 0;       ///< last match of the path; node 0: no path
  int first_node = 0;                    ///< exit node if the path ended in row 1
  std::array<float, kMaxCodes> null2{};  ///< odds of the K residues by expectation
};

/// One sequence, region or envelope in a Forward/Backward pass.
struct Job {
  const Residue* residues = nullptr;
  int L = 0;
  float loop = 0, move = 0;  ///< N, C, J odds
  int first_row = 0;         ///< of its table in the lanes' EmissionRows
  std::size_t owner = 0;     ///< index of its target, region or envelope
  int group = 0, start = 0;  ///< group of lanes, and row in it, where row 0 lies
  bool own_scale = false;    ///< Backward no longer uses Forward's scales
  DecodedEnvelope decoded;

  std::uint16_t row_of(Residue code) const { return static_cast<std::uint16_t>(first_row + code); }
};
/// A job for a whole sequence.
Job make_job(std::span<const Residue> residues, const LengthModel& length, std::size_t owner);
/// Sorts jobs by length, and equally long ones by owner.
void longest_first(std::vector<Job>& jobs);

struct EmissionRows;

/// Rows of jobs. Each group of lanes holds its jobs one after the other: rows 0 to L of one, then
/// row 0 of the next. The very last row belongs to no job.
struct Lanes {
  /// Deals jobs, longest first, each to the group with the fewest rows.
  void deal(const EmissionRows& emission_rows, std::span<Job> jobs, int group_count);
  /// Rows that deal() needs.
  static int rows_for(std::span<const Job> jobs, int group_count);
  /// Rows first to last+1 of a job that has all lanes to itself; row `first` becomes row 0 here.
  void take_part(const EmissionRows& emission_rows, Job& job, int first, int last);

  /// Copies Forward's special states for a job that has other rows in `from`.
  void copy_forward(const Job& job, const Lanes& from, const Job& there);

  SpecialRows forward_of(const Job& job) const { return special_rows(forward, job); }
  SpecialRows backward_of(const Job& job) const { return special_rows(backward, job); }
  float* forward_row(int row) { return forward.data() + row_offset(row); }
  float* backward_row(int row) { return backward.data() + row_offset(row); }

  int groups = 0, rows = 0;
  std::array<std::vector<Job*>, kMaxGroups> jobs;  ///< of each group, ordered by row
  const EmissionRows* emission = nullptr;
  std::vector<std::uint16_t> codes;       ///< [rows + 1][groups]: rows of `emission`; those of
                                          ///< kPaddingCode in row 0 of a job
  std::vector<std::uint8_t> borders;      ///< [rows + 1]; bit g: row 0 or L+1 of a job of group g
  AlignedArray<float> forward, backward;  ///< [rows][2][groups * kLanes], see SpecialRow

 private:
  void clear(int group_count, int row_count);
  std::size_t row_offset(int row) const {
    return row * static_cast<std::size_t>(2 * kLanes * groups);
  }
  SpecialRows special_rows(const AlignedArray<float>& rows_of_all, const Job& job) const {
    return {rows_of_all.data() + job.group * kLanes, groups, job.start};
  }
};

/// 1/x, rounded from double to float as HMMER does.
inline float inverse_of(float x) { return static_cast<float>(1.0 / static_cast<double>(x)); }
/// Adds the logarithms of the scale factors of rows 1 to L to `log_scale`, row by row.
float add_log_scales(const SpecialRows& rows, int L, float log_scale);
/// Forward's score of a job in nats, see forward_nats().
float forward_score(const Lanes& lanes, const Job& job);

/// For each group, the job that contains a given row.
class LaneCursor {
 public:
  LaneCursor(const Lanes& lanes, int row);
  /// Null before the first job and after the last.
  Job* operator[](int g) const {
    const auto& jobs = lanes_.jobs[g];
    const int at = at_[g];
    return at >= 0 && at < static_cast<int>(jobs.size()) ? jobs[at] : nullptr;
  }
  Job* next(int g) { return ++at_[g], (*this)[g]; }
  Job* previous(int g) { return --at_[g], (*this)[g]; }

 private:
  const Lanes& lanes_;
  int at_[kMaxGroups];
};

}  // namespace hmmjit::domain
