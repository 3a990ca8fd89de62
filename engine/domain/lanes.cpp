#include "domain/lanes.hpp"

#include <algorithm>

namespace hmmjit::domain {
namespace {

// Calls visit(job, group, start) for each job.
template <typename JobSpan, typename Visit>
std::array<int, kMaxGroups> deal_each(JobSpan jobs, int groups, const Visit& visit) {
  std::array<int, kMaxGroups> rows{};
  for (auto& job : jobs) {
    const auto least = std::min_element(rows.begin(), rows.begin() + groups);
    visit(job, static_cast<int>(least - rows.begin()), *least);
    *least += job.L + 1;
  }
  return rows;
}

}  // namespace

Job make_job(std::span<const Residue> residues, const LengthModel& length, std::size_t owner) {
  Job job;
  job.residues = residues.data();
  job.L = static_cast<int>(residues.size());
  job.loop = length.loop;
  job.move = length.move;
  job.owner = owner;
  return job;
}

void longest_first(std::vector<Job>& jobs) {
  std::sort(jobs.begin(), jobs.end(),
            [](const Job& a, const Job& b) { return a.L != b.L ? a.L > b.L : a.owner < b.owner; });
}

int Lanes::rows_for(std::span<const Job> jobs, int group_count) {
  const auto rows = deal_each(jobs, group_count, [](const Job&, int, int) {});
  return *std::max_element(rows.begin(), rows.end()) + 1;
}

void Lanes::clear(int group_count, int row_count) {
  groups = group_count;
  rows = row_count;
  for (auto& of_group : jobs) of_group.clear();
  codes.assign(static_cast<std::size_t>(rows + 1) * static_cast<std::size_t>(groups), kPaddingCode);
  borders.assign(static_cast<std::size_t>(rows) + 1, 0);
  // Backward reads scale factors even where there is no job.
  std::fill_n(forward.ensure(row_offset(rows)), row_offset(rows), 1.0f);
  backward.ensure(row_offset(rows));
}

void Lanes::deal(const EmissionRows& emission_rows, std::span<Job> all, int group_count) {
  emission = &emission_rows;
  clear(group_count, rows_for(all, group_count));
  const auto ends = deal_each(all, groups, [&](Job& job, int g, int start) {
    job.group = g;
    job.start = start;
    jobs[g].push_back(&job);
    borders[static_cast<std::size_t>(start)] |= static_cast<std::uint8_t>(1u << g);
    auto* code = codes.data() + std::size_t(start + 1) * std::size_t(groups) + g;
    for (int i = 0; i < job.L; ++i, code += groups) *code = job.row_of(job.residues[i]);
  });
  for (int g = 0; g < groups; ++g) {
    borders[static_cast<std::size_t>(ends[g])] |= static_cast<std::uint8_t>(1u << g);
  }
}

void Lanes::take_part(const EmissionRows& emission_rows, Job& job, int first, int last) {
  emission = &emission_rows;
  const int count = last - first;
  clear(1, count + 2);
  job.group = 0;
  job.start = -first;
  jobs[0].assign(1, &job);
  std::transform(job.residues + first, job.residues + std::min(last + 1, job.L), codes.begin() + 1,
                 [&](Residue code) { return job.row_of(code); });
  borders.front() = first == 0;
  borders[static_cast<std::size_t>(count) + 1] = last == job.L;
}

void Lanes::copy_forward(const Job& job, const Lanes& from, const Job& there) {
  const SpecialRows rows_there = from.forward_of(there);
  for (int i = 0; i <= job.L; ++i)
    SpecialRows::put(rows_there[i], groups, forward_row(job.start + i) + job.group * kLanes);
}

float add_log_scales(const SpecialRows& rows, int L, float log_scale) {
  for (int i = 1; i <= L; ++i) {
    const float scale = rows[i].scale;
    if (scale > 1.0f) log_scale = add_log(log_scale, scale);
  }
  return log_scale;
}

float forward_score(const Lanes& lanes, const Job& job) {
  const SpecialRows rows = lanes.forward_of(job);
  return forward_nats(add_log_scales(rows, job.L, 0.0f), rows[job.L].C, job.move);
}

LaneCursor::LaneCursor(const Lanes& lanes, int row) : lanes_(lanes) {
  for (int g = 0; g < kMaxGroups; ++g) {
    const auto& jobs = lanes.jobs[g];
    int after = 0;
    const int count = static_cast<int>(jobs.size());
    while (after < count && jobs[after]->start <= row) ++after;
    const bool past_all =
        after == count && (count == 0 || row > jobs.back()->start + jobs.back()->L);
    at_[g] = past_all && row >= 0 ? count : after - 1;
  }
}

}  // namespace hmmjit::domain
