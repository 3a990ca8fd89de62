#include "domain/domain.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/threads.hpp"
#include "domain/alignment.hpp"
#include "domain/ensemble.hpp"
#include "domain/long_target.hpp"
#include "domain/null2.hpp"
#include "domain/regions.hpp"
#include "model/numeric.hpp"
#include "model/score_statistics.hpp"

namespace hmmjit::domain {
namespace {

class Stopwatch {
 public:
  explicit Stopwatch(double& total) : total_(total), start_(thread_seconds()) {}
  ~Stopwatch() { total_ += thread_seconds() - start_; }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& total_;
  double start_;
};

// Wide vectors pay as long as the matrix of their group stays in a cache near the core; the
// scattered reads of the tracebacks ask for a smaller one than the passes over envelopes.
constexpr std::size_t kRegionGroupBytes = std::size_t{1} << 20;
constexpr std::size_t kEnvelopeGroupBytes = std::size_t{3} << 20;

// Cells of a group of envelopes. Groups grow and shrink below their bound: room for the largest is
// made at once, whose pages take memory when they are used.
float* group_matrix(AlignedArray<float>& storage, std::size_t cells) {
  constexpr std::size_t kLargest = kEnvelopeGroupBytes / sizeof(float);
  return cells <= kLargest ? storage.ensure_exactly(kLargest) : storage.ensure(cells);
}

constexpr float kNone = -std::numeric_limits<float>::infinity();
constexpr float kNoScore = std::numeric_limits<float>::quiet_NaN();

float forward_score(const Job& job) { return forward_nats(job.log_scale, job.last_c, job.move); }

Job make_job(std::span<const Residue> residues, const LengthModel& length) {
  Job job;
  job.residues = residues.data();
  job.L = static_cast<int>(residues.size());
  job.loop = length.loop;
  job.move = length.move;
  return job;
}

struct TargetWork {
  const TargetView* target;
  const ParsedTarget* parsed;  // null: not known yet
  LengthModel multihit, unihit;
  Job parser;
  std::unique_ptr<LongTarget> in_parts;  // null: parsed with all rows kept
  std::size_t rows_at;                   // of its special rows in the arrays of the batch
  float* correction;                     // null2 in nats, [L + 1]
  float forward_nats;
  bool dropped;
  bool align_now;  // expected to be wanted
  std::size_t first_region, region_count;
  TargetScore score;
};

// A region, and then what came of it: one envelope, or those of its clusters.
struct RegionWork {
  std::size_t target;
  Region region;
  std::size_t first_envelope, envelope_count;
  const ParsedRegion* found;  // null: not known yet
};

struct EnvelopeWork {
  std::size_t target;
  int i, j;
  bool clustered;
  bool scored;
  Domain domain;
  const ScoredEnvelope* found;  // null: not known yet
};

}  // namespace

struct Workspace::State {
  DomainTimes times;
  AlignedArray<float> scratch, matrix, accuracy, weights, factors, correction;
  AlignedArray<SpecialRow> forward, backward, full_forward, full_backward;
  AlignedArray<AccuracyRow> accuracy_rows;
  AlignedArray<Occupancy> occupancy;
  std::vector<ZeroPages<float>> long_corrections;
  std::vector<TargetWork> targets;
  std::vector<Job> jobs;
  std::vector<std::size_t> job_target;  // of each job
  std::vector<Region> regions;
  std::vector<RegionWork> region_work;
  std::vector<EnvelopeWork> envelopes;
  std::vector<Cluster> clusters;
  std::vector<std::size_t> chosen;  // regions or envelopes of the current pass
  Ensemble ensemble;
  Clustering clustering;
  Aligner aligner;
  LinearCongruential random{42};
  bool seeded = false;  // the generator has been started and is never reset
};

Workspace::Workspace() : state_(std::make_unique<State>()) {}
Workspace::~Workspace() = default;
Workspace::Workspace(Workspace&&) noexcept = default;
const DomainTimes& Workspace::times() const { return state_->times; }

void Workspace::release_memory() {
  for (auto* array : {&state_->scratch, &state_->matrix, &state_->accuracy, &state_->weights,
                      &state_->factors, &state_->correction})
    array->release();
  for (auto* array :
       {&state_->forward, &state_->backward, &state_->full_forward, &state_->full_backward})
    array->release();
  state_->long_corrections.clear();
  state_->targets.clear();
  state_->accuracy_rows.release();
  state_->occupancy.release();
}

DomainTimes& DomainTimes::operator+=(const DomainTimes& other) {
  forward += other.forward;
  backward += other.backward;
  decoding += other.decoding;
  ensemble += other.ensemble;
  clustering += other.clustering;
  envelope += other.envelope;
  alignment += other.alignment;
  return *this;
}

namespace {

// Everything after the Forward filter for some targets of one model, phase by phase, so that
// equal work of different targets can share vectors.
class Batch {
 public:
  Batch(const ForwardTables& model, const DomainOptions& options, const WantedTarget& wanted,
        Workspace::State& state, std::span<const ParsedTarget* const> parsed = {})
      : model_(model.model()),
        t_(model.tables()),
        options_(options),
        wanted_(wanted),
        parsed_(parsed),
        s_(state) {}

  void run(std::span<const TargetView> targets, const PassesForward& passes,
           std::span<float> forward_nats, std::span<std::optional<TargetScore>> results);

 private:
  void parse(std::span<const TargetView> targets, const PassesForward& passes,
             std::span<float> forward_nats);
  void collect_jobs();
  void check_matrix(const TargetWork& work, std::size_t rows) const;
  void find_all_regions();
  const SampledRegion* sampled(const RegionWork& r) const;
  void take_sums(const RegionWork& r);
  void cluster_regions();
  void cluster_group(std::span<const std::size_t> group, const Kernels& kernel);
  template <typename Length, typename Run>
  void in_groups(std::size_t bytes, const Length& length, const Run& run);
  void predict_wanted();
  void score_envelopes();
  void score_without_cells();
  void run_full_matrices(bool score);
  void run_group(std::span<const std::size_t> group, const Kernels& kernel, bool score);
  static float set_posteriors(Job& job);
  void expected_odds(const Job& job, float* odds) const;
  void correct_by_expectation(const EnvelopeWork& envelope, float* odds);
  void take_found(EnvelopeWork& envelope);
  void align_found(EnvelopeWork& envelope);
  bool is_wanted(const TargetWork& work, const TargetScore& score) const {
    return !wanted_ || wanted_(static_cast<std::size_t>(&work - s_.targets.data()), score);
  }
  template <typename Visit>
  void for_each_envelope(const TargetWork& work, const Visit& visit);
  void finish(TargetWork& work);
  float bias(float nats) const;
  double log_p(float bits) const;

  static float* correction(const TargetWork& work) { return work.correction; }
  std::size_t row_floats(int groups) const { return MatrixLayout::of(t_.Q, groups).row; }
  static std::span<const Residue> part(const TargetWork& work, int i, int j) {
    return work.target->residues.subspan(static_cast<std::size_t>(i - 1),
                                         static_cast<std::size_t>(j - i + 1));
  }

  const SearchModel& model_;
  const ForwardTables::Tables& t_;
  const DomainOptions& options_;
  const WantedTarget& wanted_;
  std::span<const ParsedTarget* const> parsed_;
  Workspace::State& s_;
};

// Parser jobs of all targets that are left and not parsed, longest first: the last ones to run in a
// vector should be short.
void Batch::collect_jobs() {
  s_.job_target.clear();
  for (std::size_t n = 0; n < s_.targets.size(); ++n) {
    const TargetWork& work = s_.targets[n];
    if (!work.dropped && work.parsed == nullptr && work.in_parts == nullptr)
      s_.job_target.push_back(n);
  }
  std::sort(s_.job_target.begin(), s_.job_target.end(), [&](std::size_t a, std::size_t b) {
    const int La = s_.targets[a].parser.L, Lb = s_.targets[b].parser.L;
    return La != Lb ? La > Lb : a < b;
  });
  s_.jobs.clear();
  for (const std::size_t n : s_.job_target) s_.jobs.push_back(s_.targets[n].parser);
}

void Batch::parse(std::span<const TargetView> targets, const PassesForward& passes,
                  std::span<float> forward_nats) {
  s_.targets.clear();
  s_.long_corrections.clear();
  const auto is_long = [this](int L) { return L > options_.longest_in_one; };
  std::size_t rows = 0;
  for (std::size_t n = 0; n < targets.size(); ++n) {
    const int L = targets[n].length();
    TargetWork work{};
    work.target = &targets[n];
    work.multihit = length_model(L, true);
    work.unihit = length_model(L, false);
    work.rows_at = rows;
    work.dropped = L == 0;
    if (!is_long(L)) rows += static_cast<std::size_t>(L) + 1;
    s_.targets.push_back(std::move(work));
  }
  SpecialRow* forward = s_.forward.ensure(rows);
  SpecialRow* backward = s_.backward.ensure(rows);
  if (rows > 0) s_.correction.zero(rows);
  for (TargetWork& work : s_.targets) {
    work.parser = make_job(work.target->residues, work.multihit);
    if (is_long(work.parser.L)) {
      // What lies outside the regions stays zero, and takes no memory.
      s_.long_corrections.emplace_back(static_cast<std::size_t>(work.parser.L) + 1);
      work.correction = s_.long_corrections.back().data();
      continue;
    }
    work.parser.forward = forward + work.rows_at;
    work.parser.backward = backward + work.rows_at;
    work.correction = s_.correction.data() + work.rows_at;
  }
  const LengthModel& odds = s_.targets.front().multihit;
  for (std::size_t n = 0; n < parsed_.size(); ++n) s_.targets[n].parsed = parsed_[n];
  for (TargetWork& work : s_.targets) {
    if (work.dropped || work.parsed != nullptr || !is_long(work.parser.L)) continue;
    const Stopwatch watch(s_.times.forward);
    work.in_parts =
        std::make_unique<LongTarget>(t_, work.parser, options_.rows_of_part, odds.ec, odds.ej);
    work.parser = work.in_parts->forward();
  }
  collect_jobs();
  if (!s_.jobs.empty()) {
    const Stopwatch watch(s_.times.forward);
    const int count = static_cast<int>(s_.jobs.size());
    const Kernels& kernel = kernels(count);
    kernel.forward_parser(t_, s_.jobs.data(), count, odds.ec, odds.ej,
                          s_.scratch.ensure(row_floats(kernel.groups)));
  }
  for (std::size_t a = 0; a < s_.jobs.size(); ++a) s_.targets[s_.job_target[a]].parser = s_.jobs[a];
  for (std::size_t n = 0; n < s_.targets.size(); ++n) {
    TargetWork& work = s_.targets[n];
    forward_nats[n] = work.parsed != nullptr ? work.parsed->forward_nats
                      : work.dropped         ? kNoScore
                                             : forward_score(work.parser);
    if (std::isnan(forward_nats[n]) || !passes(n, forward_nats[n])) work.dropped = true;
    if (work.dropped) work.in_parts.reset();
    work.forward_nats = forward_nats[n];
  }
  collect_jobs();
  if (!s_.jobs.empty()) {
    const Stopwatch watch(s_.times.backward);
    const int count = static_cast<int>(s_.jobs.size());
    const Kernels& kernel = kernels(count);
    kernel.backward_parser(t_, s_.jobs.data(), count, odds.ec, odds.ej,
                           s_.scratch.ensure(row_floats(kernel.groups)));
  }
  for (std::size_t a = 0; a < s_.jobs.size(); ++a) s_.targets[s_.job_target[a]].parser = s_.jobs[a];
}

void Batch::check_matrix(const TargetWork& work, std::size_t rows) const {
  static const std::size_t half_of_memory = static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) *
                                            static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) / 2;
  const std::size_t limit =
      options_.max_matrix_bytes > 0 ? options_.max_matrix_bytes : half_of_memory;
  // With its headroom.
  const std::size_t bytes = rows * row_floats(1) * sizeof(float) / 4 * 5;
  if (bytes <= limit) return;
  throw MatrixTooLarge(fmt::format(
      "a region of {} residues of target {} needs {} MiB for model {} (M={}), more than the {} MiB "
      "allowed",
      rows - 1, work.target->name, bytes >> 20, model_.hmm.name, t_.M, limit >> 20));
}

void Batch::find_all_regions() {
  const Stopwatch watch(s_.times.decoding);
  s_.region_work.clear();
  for (std::size_t n = 0; n < s_.targets.size(); ++n) {
    TargetWork& work = s_.targets[n];
    work.first_region = s_.region_work.size();
    if (work.dropped) continue;
    if (work.parsed != nullptr) {
      if (!work.parsed->decoded) {
        work.dropped = true;
        continue;
      }
      work.score.expected_domains = work.parsed->expected_domains;
      for (const ParsedRegion& r : work.parsed->regions) {
        s_.region_work.push_back({n, {r.first, r.last, r.several}, 0, 0, &r});
      }
      work.region_count = work.parsed->regions.size();
      continue;
    }
    const auto add_regions = [&] {
      for (const Region& region : s_.regions) s_.region_work.push_back({n, region, 0, 0, nullptr});
      work.region_count = s_.regions.size();
    };
    s_.regions.clear();
    if (work.in_parts != nullptr) {
      work.dropped = !work.in_parts->find_regions(s_.regions, work.score.expected_domains);
      work.in_parts.reset();
      if (!work.dropped) add_regions();
      continue;
    }
    const int L = work.parser.L;
    Occupancy* occupancy = s_.occupancy.ensure(static_cast<std::size_t>(L) + 1);
    if (!decode_occupancy(work.parser, occupancy)) {
      work.dropped = true;
      continue;
    }
    work.score.expected_domains = occupancy[L].begins;
    find_regions(occupancy, L, s_.regions);
    add_regions();
  }
}

// Sampled traces and clusters of regions of about equal length, whose Forward passes share
// vectors.
void Batch::cluster_group(std::span<const std::size_t> group, const Kernels& kernel) {
  const int count = static_cast<int>(group.size());
  Job jobs[kMaxGroups];
  std::size_t rows = 0;
  for (const std::size_t n : group) {
    const Region& region = s_.region_work[n].region;
    rows = std::max(rows, static_cast<std::size_t>(region.j - region.i) + 2);
  }
  SpecialRow* forward = s_.full_forward.ensure(rows * group.size());
  float* matrix = s_.matrix.ensure(rows * row_floats(kernel.groups));
  for (std::size_t g = 0; g < group.size(); ++g) {
    const RegionWork& r = s_.region_work[group[g]];
    const TargetWork& work = s_.targets[r.target];
    jobs[g] = make_job(part(work, r.region.i, r.region.j), work.multihit);
    jobs[g].forward = forward + g * rows;
  }
  const LengthModel& odds = s_.targets.front().multihit;
  {
    const Stopwatch watch(s_.times.ensemble);
    kernel.forward_full(t_, jobs, count, odds.ec, odds.ej, matrix);
  }
  for (std::size_t g = 0; g < group.size(); ++g) {
    RegionWork& r = s_.region_work[group[g]];
    const TargetWork& work = s_.targets[r.target];
    if (options_.reseed || !s_.seeded) s_.random.reseed(options_.seed);
    s_.seeded = true;
    const std::vector<Segment>* segments;
    {
      const Stopwatch watch(s_.times.ensemble);
      const RegionMatrix view{
          &t_,     &jobs[g], matrix + g * kLanes, MatrixLayout::of(t_.Q, kernel.groups),
          odds.ec, odds.ej};
      segments = &s_.ensemble.sample(view, s_.random, r.region.i - 1,
                                     options_.null2 ? correction(work) + r.region.i : nullptr);
    }
    const Stopwatch watch(s_.times.clustering);
    const std::vector<Cluster>& clusters = s_.clustering.run(*segments, Ensemble::kTraces);
    r.first_envelope = s_.clusters.size();
    r.envelope_count = clusters.size();
    s_.clusters.insert(s_.clusters.end(), clusters.begin(), clusters.end());
  }
}

// What a device has found out about a region of several domains. A generator that is never reset
// goes on here, whatever others have sampled.
const SampledRegion* Batch::sampled(const RegionWork& r) const {
  return options_.reseed && r.found != nullptr && r.found->sampled ? &*r.found->sampled : nullptr;
}

void Batch::take_sums(const RegionWork& r) {
  if (!options_.null2) return;
  Ensemble::to_correction(sampled(r)->null2_sums, correction(s_.targets[r.target]) + r.region.i);
}

void Batch::cluster_regions() {
  s_.clusters.clear();
  s_.chosen.clear();
  for (std::size_t n = 0; n < s_.region_work.size(); ++n) {
    RegionWork& r = s_.region_work[n];
    TargetWork& work = s_.targets[r.target];
    ++work.score.regions;
    if (!r.region.multidomain) continue;
    ++work.score.clustered;
    check_matrix(work, static_cast<std::size_t>(r.region.j - r.region.i) + 2);
    if (sampled(r) != nullptr) {
      take_sums(r);
    } else {
      s_.chosen.push_back(n);
    }
  }
  in_groups(
      kRegionGroupBytes,
      [&](std::size_t n) { return s_.region_work[n].region.j - s_.region_work[n].region.i + 1; },
      [&](std::span<const std::size_t> group, const Kernels& kernel) {
        cluster_group(group, kernel);
      });
  // Envelopes in order of the targets and their regions.
  s_.envelopes.clear();
  for (RegionWork& r : s_.region_work) {
    const std::size_t first = s_.envelopes.size();
    const auto found = [](const std::optional<ScoredEnvelope>& envelope) {
      return envelope ? &*envelope : nullptr;
    };
    if (sampled(r) != nullptr) {
      for (const SampledRegion::Cluster& c : sampled(r)->clusters)
        s_.envelopes.push_back({r.target, c.first, c.last, true, false, {}, found(c.envelope)});
    } else if (r.region.multidomain) {
      for (std::size_t c = r.first_envelope; c < r.first_envelope + r.envelope_count; ++c) {
        s_.envelopes.push_back(
            {r.target, s_.clusters[c].i, s_.clusters[c].j, true, false, {}, nullptr});
      }
    } else {
      s_.envelopes.push_back({r.target,
                              r.region.i,
                              r.region.j,
                              false,
                              false,
                              {},
                              r.found != nullptr ? found(r.found->envelope) : nullptr});
    }
    r.first_envelope = first;
    r.envelope_count = s_.envelopes.size() - first;
  }
}

// Runs the chosen work in groups of about equal length, longest first. `bytes`: the largest
// matrix a group may have; single ones may be larger.
template <typename Length, typename Run>
void Batch::in_groups(std::size_t bytes, const Length& length, const Run& run) {
  std::sort(s_.chosen.begin(), s_.chosen.end(), [&](std::size_t a, std::size_t b) {
    return length(a) != length(b) ? length(a) > length(b) : a < b;
  });
  for (std::size_t at = 0; at < s_.chosen.size();) {
    const auto rows = static_cast<std::size_t>(length(s_.chosen[at])) + 1;
    int groups = static_cast<int>(std::min<std::size_t>(kMaxGroups, s_.chosen.size() - at));
    while (groups > 1 && rows * row_floats(groups) * sizeof(float) > bytes) groups /= 2;
    const Kernels& kernel = kernels(groups);
    const auto count = std::min(static_cast<std::size_t>(kernel.groups), s_.chosen.size() - at);
    run(std::span<const std::size_t>(s_.chosen).subspan(at, count), kernel);
    at += count;
  }
}

// Factors of the posteriors by row, and the optimal accuracy specials that do not depend on E.
// Returns the last scale: infinite where the decoding has overflown.
float Batch::set_posteriors(Job& job) {
  const SpecialRow* f = job.forward;
  const SpecialRow* b = job.backward;
  AccuracyRow* a = job.accuracy;
  a[0] = {kNone, 0.0f, kNone, 0.0f, kNone, 0.0f, 0.0f, 0.0f};
  float scale = static_cast<float>(1.0 / static_cast<double>(b[0].N));
  for (int i = 1; i <= job.L; ++i) {
    job.factor[i] = scale * f[i].scale;
    const float n = f[i - 1].N * b[i].N * job.loop * scale;
    const float j = f[i - 1].J * b[i].J * job.loop * scale;
    const float c = f[i - 1].C * b[i].C * job.loop * scale;
    // The unihit model has no transition from E to J; that candidate counts as 0.
    a[i].N = job.loop == 0.0f ? 0.0f : a[i - 1].N + n;
    a[i].J = std::max(job.loop == 0.0f ? 0.0f : a[i - 1].J + j, 0.0f);
    a[i].B = job.move == 0.0f ? 0.0f : std::max(a[i].N, a[i].J);
    a[i].posterior_n = n;
    a[i].posterior_j = j;
    a[i].posterior_c = c;
    if (job.own_scale) scale *= f[i].scale / b[i].scale;
  }
  return scale;
}

// Null2 odds of the alphabet's residues.
void Batch::expected_odds(const Job& job, float* odds) const {
  // Expected emissions from N, C and J, summed over the rows.
  float n = 0, c = 0, j = 0;
  for (int i = 1; i <= job.L; ++i) {
    n += job.accuracy[i].posterior_n;
    c += job.accuracy[i].posterior_c;
    j += job.accuracy[i].posterior_j;
  }
  const float norm = static_cast<float>(1.0 / static_cast<double>(static_cast<float>(job.L)));
  n *= norm;
  c *= norm;
  j *= norm;
  const float outside = (n + c) + j;
  const auto cells = static_cast<std::size_t>(t_.Q) * kLanes;
  for (std::size_t a = 0; a < cells; ++a) {
    job.weight_match[a] *= norm;
    job.weight_insert[a] *= norm;
  }
  for (int x = 0; x < t_.K; ++x) {
    const float* match = t_.match_row(x);
    float sum[kLanes] = {};
    for (std::size_t a = 0; a < cells; a += kLanes) {
      for (std::size_t r = 0; r < kLanes; ++r) {
        sum[r] += job.weight_match[a + r] * match[a + r];
        sum[r] += job.weight_insert[a + r];
      }
    }
    odds[x] = ((sum[0] + sum[1]) + (sum[2] + sum[3])) + outside;
  }
}

void Batch::correct_by_expectation(const EnvelopeWork& envelope, float* odds) {
  complete_null2(*t_.alphabet, odds);
  const TargetWork& work = s_.targets[envelope.target];
  float* correction = this->correction(work);
  float logs[kMaxCodes];
  for (int x = 0; x < t_.Kp; ++x) logs[x] = std::log(odds[x]);
  for (int i = envelope.i; i <= envelope.j; ++i) {
    correction[i] = logs[work.target->residues[static_cast<std::size_t>(i - 1)]];
  }
}

// A guess from what is known of null2 before the envelopes are scored. A wrong guess costs time,
// nothing else.
void Batch::predict_wanted() {
  for (TargetWork& work : s_.targets) {
    work.align_now = true;
    if (work.dropped || !wanted_) continue;
    TargetScore guess;
    const int L = work.parser.L;
    CompensatedSum total;
    for (int i = 0; i <= L; ++i) total.add(correction(work)[i]);
    const float null = null_score(L);
    guess.pre_bits = nats_to_bits(work.forward_nats - null);
    guess.bits = nats_to_bits(work.forward_nats - (null + bias(total.value())));
    guess.log_p = log_p(guess.bits);
    work.align_now = is_wanted(work, guess);
  }
}

// Envelopes of clustered regions have their null2 already: if no alignment is asked for, the
// score and the check of the decoding need no matrix.
void Batch::score_without_cells() {
  s_.chosen.clear();
  std::size_t rows = 0;
  for (std::size_t e = 0; e < s_.envelopes.size(); ++e) {
    const EnvelopeWork& envelope = s_.envelopes[e];
    if (!envelope.clustered || envelope.found != nullptr || s_.targets[envelope.target].align_now)
      continue;
    s_.chosen.push_back(e);
    rows += static_cast<std::size_t>(envelope.j - envelope.i) + 2;
  }
  if (s_.chosen.empty()) return;
  const Stopwatch watch(s_.times.envelope);
  SpecialRow* forward = s_.full_forward.ensure(rows);
  SpecialRow* backward = s_.full_backward.ensure(rows);
  s_.jobs.clear();
  std::size_t at = 0;
  for (const std::size_t e : s_.chosen) {
    const EnvelopeWork& envelope = s_.envelopes[e];
    const TargetWork& work = s_.targets[envelope.target];
    Job job = make_job(part(work, envelope.i, envelope.j), work.unihit);
    job.forward = forward + at;
    job.backward = backward + at;
    at += static_cast<std::size_t>(job.L) + 1;
    s_.jobs.push_back(job);
  }
  const int count = static_cast<int>(s_.jobs.size());
  const Kernels& kernel = kernels(count);
  const LengthModel& odds = s_.targets.front().unihit;
  float* scratch = s_.scratch.ensure(row_floats(kernel.groups));
  kernel.forward_parser(t_, s_.jobs.data(), count, odds.ec, odds.ej, scratch);
  kernel.backward_parser(t_, s_.jobs.data(), count, odds.ec, odds.ej, scratch);
  for (std::size_t n = 0; n < s_.chosen.size(); ++n) {
    EnvelopeWork& envelope = s_.envelopes[s_.chosen[n]];
    const Job& job = s_.jobs[n];
    envelope.domain.envelope_nats = forward_score(job);
    float scale = static_cast<float>(1.0 / static_cast<double>(job.backward[0].N));
    for (int i = 1; job.own_scale && i <= job.L; ++i) {
      scale *= job.forward[i].scale / job.backward[i].scale;
    }
    envelope.scored = !std::isinf(scale) && !std::isnan(envelope.domain.envelope_nats);
  }
}

// Forward, Backward and what follows from them for some envelopes of about equal length. `score`:
// for the first time; else the envelope is known to succeed and only its alignment is missing.
void Batch::run_group(std::span<const std::size_t> group, const Kernels& kernel, bool score) {
  const auto cells = static_cast<std::size_t>(t_.Q) * kLanes;
  const int count = static_cast<int>(group.size());
  std::size_t rows = 0;
  for (const std::size_t e : group) {
    rows = std::max(rows, static_cast<std::size_t>(s_.envelopes[e].j - s_.envelopes[e].i) + 2);
  }
  SpecialRow* forward = s_.full_forward.ensure(rows * group.size());
  SpecialRow* backward = s_.full_backward.ensure(rows * group.size());
  AccuracyRow* accuracy_rows = s_.accuracy_rows.ensure(rows * group.size());
  float* factors = s_.factors.ensure(rows * group.size());
  float* weights = s_.weights.ensure(2 * cells * group.size());
  const std::size_t row = row_floats(kernel.groups);
  float* matrix = group_matrix(s_.matrix, rows * row);
  Job jobs[kMaxGroups];
  bool any_expectation = false, any_alignment = false;
  for (std::size_t g = 0; g < group.size(); ++g) {
    const EnvelopeWork& envelope = s_.envelopes[group[g]];
    const TargetWork& work = s_.targets[envelope.target];
    check_matrix(work, rows);
    jobs[g] = make_job(part(work, envelope.i, envelope.j), work.unihit);
    jobs[g].forward = forward + g * rows;
    jobs[g].backward = backward + g * rows;
    jobs[g].accuracy = accuracy_rows + g * rows;
    jobs[g].factor = factors + g * rows;
    jobs[g].weight_match = weights + g * 2 * cells;
    jobs[g].weight_insert = jobs[g].weight_match + cells;
    any_expectation |= score && !envelope.clustered && options_.null2;
    any_alignment |= !score || work.align_now;
  }
  const LengthModel& odds = s_.targets.front().unihit;
  {
    const Stopwatch watch(s_.times.envelope);
    kernel.forward_full(t_, jobs, count, odds.ec, odds.ej, matrix);
    kernel.backward_product(t_, jobs, count, odds.ec, odds.ej, matrix, s_.scratch.ensure(row));
    for (std::size_t g = 0; g < group.size(); ++g) {
      EnvelopeWork& envelope = s_.envelopes[group[g]];
      const float scale = set_posteriors(jobs[g]);
      envelope.domain.envelope_nats = forward_score(jobs[g]);
      envelope.scored = !std::isinf(scale) && !std::isnan(envelope.domain.envelope_nats);
    }
    if (any_expectation) {
      kernel.posterior_sums(t_, jobs, count, matrix);
      for (std::size_t g = 0; g < group.size(); ++g) {
        const EnvelopeWork& envelope = s_.envelopes[group[g]];
        if (!envelope.scored || envelope.clustered) continue;
        float null2[kMaxCodes];
        expected_odds(jobs[g], null2);
        correct_by_expectation(envelope, null2);
      }
    }
  }
  if (!any_alignment) return;
  const Stopwatch watch(s_.times.alignment);
  float* accuracy = group_matrix(s_.accuracy, rows * row);
  kernel.optimal_accuracy(t_, jobs, count, matrix, accuracy);
  for (std::size_t g = 0; g < group.size(); ++g) {
    EnvelopeWork& envelope = s_.envelopes[group[g]];
    if (!envelope.scored || (score && !s_.targets[envelope.target].align_now)) continue;
    AccuracyRow* a = jobs[g].accuracy;
    for (int i = 1; i <= jobs[g].L; ++i) {
      a[i].C = std::max(jobs[g].loop == 0.0f ? 0.0f : a[i - 1].C + a[i].posterior_c, a[i].E);
    }
    Domain& domain = envelope.domain;
    domain.ienv = envelope.i;
    domain.jenv = envelope.j;
    domain.accuracy_sum = a[jobs[g].L].C;
    const std::size_t first = g * kLanes;
    const AccuracyMatrices view{&t_, &jobs[g], matrix + first, accuracy + first,
                                MatrixLayout::of(t_.Q, kernel.groups)};
    envelope.scored = s_.aligner.align(view, model_.hmm, domain);
  }
}

void Batch::run_full_matrices(bool score) {
  in_groups(
      kEnvelopeGroupBytes, [&](std::size_t e) { return s_.envelopes[e].j - s_.envelopes[e].i + 1; },
      [&](std::span<const std::size_t> group, const Kernels& kernel) {
        run_group(group, kernel, score);
      });
}

void Batch::align_found(EnvelopeWork& envelope) {
  Domain& domain = envelope.domain;
  domain.ienv = envelope.i;
  domain.jenv = envelope.j;
  domain.accuracy_sum = envelope.found->accuracy;
  const TargetWork& work = s_.targets[envelope.target];
  envelope.scored = s_.aligner.align(t_, part(work, envelope.i, envelope.j).data(), *envelope.found,
                                     model_.hmm, domain);
}

void Batch::take_found(EnvelopeWork& envelope) {
  const ScoredEnvelope& found = *envelope.found;
  envelope.domain.envelope_nats = found.forward_nats;
  envelope.scored = found.sound && !std::isnan(found.forward_nats);
  if (!envelope.scored) return;
  if (options_.null2 && !envelope.clustered) {
    float odds[kMaxCodes];
    std::copy_n(found.null2.begin(), t_.K, odds);
    correct_by_expectation(envelope, odds);
  }
  if (s_.targets[envelope.target].align_now) align_found(envelope);
}

void Batch::score_envelopes() {
  score_without_cells();
  s_.chosen.clear();
  for (std::size_t e = 0; e < s_.envelopes.size(); ++e) {
    EnvelopeWork& envelope = s_.envelopes[e];
    if (envelope.found != nullptr) {
      take_found(envelope);
      continue;
    }
    if (!envelope.clustered || s_.targets[envelope.target].align_now) s_.chosen.push_back(e);
  }
  run_full_matrices(true);
}

// omega, the prior of the null2 hypothesis, is 1/256.
float Batch::bias(float nats) const {
  static const double log_omega = std::log(1.0 / 256.0);
  if (!options_.null2) return 0.0f;
  return table_log_sum(0.0f, static_cast<float>(log_omega + static_cast<double>(nats)));
}

double Batch::log_p(float bits) const {
  const Calibration& c = model_.hmm.calibration;
  return exponential_log_survival(static_cast<double>(bits), static_cast<double>(c.forward_tau),
                                  static_cast<double>(c.forward_lambda));
}

template <typename Visit>
void Batch::for_each_envelope(const TargetWork& work, const Visit& visit) {
  for (std::size_t n = work.first_region; n < work.first_region + work.region_count; ++n) {
    const RegionWork& r = s_.region_work[n];
    int last_end = 0;
    for (std::size_t e = r.first_envelope; e < r.first_envelope + r.envelope_count; ++e) {
      visit(s_.envelopes[e], last_end);
    }
  }
}

void Batch::finish(TargetWork& work) {
  TargetScore& score = work.score;
  const int L = work.parser.L;
  const float* correction = this->correction(work);
  score.envelopes = score.overlaps = 0;
  score.best_domain = 0;
  score.domains.clear();
  for_each_envelope(work, [&](EnvelopeWork& envelope, int& last_end) {
    ++score.envelopes;
    if (envelope.clustered && envelope.i <= last_end) ++score.overlaps;
    if (!envelope.scored) return;
    last_end = envelope.j;
    float sum = 0;
    for (int i = envelope.i; i <= envelope.j; ++i) sum += correction[i];
    envelope.domain.ienv = envelope.i;
    envelope.domain.jenv = envelope.j;
    envelope.domain.correction_nats = sum;
    score.domains.push_back(work.align_now ? std::move(envelope.domain) : envelope.domain);
  });
  if (score.domains.empty()) {
    work.dropped = true;
    return;
  }

  const float null = null_score(L);
  CompensatedSum total;
  for (int i = 0; i <= L; ++i) total.add(correction[i]);
  score.correction_nats = total.value();
  score.pre_bits = nats_to_bits(work.forward_nats - null);
  score.bits = nats_to_bits(work.forward_nats - (null + bias(total.value())));

  // Residues outside the envelopes cost a step of the flanking states each.
  const double step =
      std::log(static_cast<double>(static_cast<float>(L) / static_cast<float>(L + 3)));
  float sum = 0, sum_correction = 0;
  int covered = 0;
  for (const Domain& d : score.domains) {
    const bool positive =
        options_.null2 ? d.envelope_nats - d.correction_nats > 0 : d.envelope_nats > 0;
    if (!positive) continue;
    sum += d.envelope_nats;
    covered += d.jenv - d.ienv + 1;
    sum_correction += d.correction_nats;
  }
  sum = static_cast<float>(static_cast<double>(sum) + static_cast<double>(L - covered) * step);
  const float sum_bits = nats_to_bits(sum - (null + bias(sum_correction)));
  if (covered > 0 && sum_bits > score.bits) {
    score.bits = sum_bits;
    score.pre_bits = nats_to_bits(sum - null);
  }
  score.log_p = log_p(score.bits);

  for (std::size_t d = 0; d < score.domains.size(); ++d) {
    Domain& domain = score.domains[d];
    const int length = domain.jenv - domain.ienv + 1;
    const float whole = static_cast<float>(static_cast<double>(domain.envelope_nats) +
                                           static_cast<double>(L - length) * step);
    domain.bias_nats = bias(domain.correction_nats);
    domain.bits = nats_to_bits(whole - (null + domain.bias_nats));
    domain.log_p = log_p(domain.bits);
    if (domain.bits > score.domains[score.best_domain].bits) score.best_domain = d;
  }
}

void Batch::run(std::span<const TargetView> targets, const PassesForward& passes,
                std::span<float> forward_nats, std::span<std::optional<TargetScore>> results) {
  if (targets.empty()) return;
  parse(targets, passes, forward_nats);
  find_all_regions();
  cluster_regions();
  predict_wanted();
  score_envelopes();
  s_.chosen.clear();
  for (TargetWork& work : s_.targets) {
    if (work.dropped) continue;
    finish(work);
    if (work.dropped || work.align_now) continue;
    if (!is_wanted(work, work.score)) {
      work.dropped = true;
      continue;
    }
    for_each_envelope(work, [&](EnvelopeWork& envelope, int&) {
      if (envelope.scored && envelope.found != nullptr) {
        align_found(envelope);
      } else if (envelope.scored) {
        s_.chosen.push_back(static_cast<std::size_t>(&envelope - s_.envelopes.data()));
      }
    });
  }
  run_full_matrices(false);
  for (TargetWork& work : s_.targets) {
    if (work.dropped || work.align_now) continue;
    work.align_now = true;
    finish(work);
  }
  for (std::size_t n = 0; n < targets.size(); ++n) {
    TargetWork& work = s_.targets[n];
    results[n].reset();
    if (!work.dropped && is_wanted(work, work.score)) results[n] = std::move(work.score);
  }
  s_.long_corrections.clear();
}

}  // namespace

void forward_filter_batch(const ForwardTables& model,
                          std::span<const std::span<const Residue>> targets,
                          std::span<float> scores, Workspace& workspace) {
  Workspace::State& s = workspace.state();
  const ForwardTables::Tables& t = model.tables();
  const Stopwatch watch(s.times.forward);
  const LengthModel odds = length_model(1, true);
  s.job_target.resize(targets.size());
  std::iota(s.job_target.begin(), s.job_target.end(), std::size_t{0});
  std::sort(s.job_target.begin(), s.job_target.end(),
            [&](std::size_t a, std::size_t b) { return targets[a].size() > targets[b].size(); });
  s.jobs.clear();
  for (const std::size_t n : s.job_target) {
    const int L = static_cast<int>(targets[n].size());
    s.jobs.push_back(make_job(targets[n], length_model(L, true)));
  }
  const int count = static_cast<int>(s.jobs.size());
  const Kernels& kernel = kernels(count);
  float* scratch = s.scratch.ensure(MatrixLayout::of(t.Q, kernel.groups).row);
  kernel.forward_parser(t, s.jobs.data(), count, odds.ec, odds.ej, scratch);
  for (std::size_t a = 0; a < s.jobs.size(); ++a) {
    scores[s.job_target[a]] = forward_score(s.jobs[a]);
  }
}

std::optional<float> forward_filter(const ForwardTables& model, std::span<const Residue> residues,
                                    Workspace& workspace) {
  float score = kNoScore;
  forward_filter_batch(model, {&residues, 1}, {&score, 1}, workspace);
  if (std::isnan(score)) return std::nullopt;
  return score;
}

void score_targets_batch(const ForwardTables& model, std::span<const TargetView> targets,
                         const PassesForward& passes, const DomainOptions& options,
                         Workspace& workspace, std::span<float> forward_nats,
                         std::span<std::optional<TargetScore>> results, const WantedTarget& wanted,
                         std::span<const ParsedTarget* const> parsed) {
  Batch(model, options, wanted, workspace.state(), parsed)
      .run(targets, passes, forward_nats, results);
}

}  // namespace hmmjit::domain
