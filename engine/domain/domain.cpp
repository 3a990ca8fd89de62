#include "domain/domain.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "core/threads.hpp"
#include "domain/alignment.hpp"
#include "domain/ensemble.hpp"
#include "domain/envelopes.hpp"
#include "domain/long_target.hpp"
#include "domain/null2.hpp"
#include "domain/regions.hpp"
#include "domain/target_score.hpp"

namespace hmmjit::domain {
namespace {

class Stopwatch {
 public:
  explicit Stopwatch(DomainPass& pass) : pass_(pass), start_(thread_seconds()) {}
  ~Stopwatch() { pass_.seconds += thread_seconds() - start_; }
  void add_cells(std::span<const Job> jobs, int M) {
    for (const Job& job : jobs)
      pass_.cells += static_cast<std::uint64_t>(job.L) * static_cast<std::uint64_t>(M);
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  DomainPass& pass_;
  double start_;
};

// Tracebacks read all over the matrices of a set of regions, which should therefore stay in a cache
// near the core.
constexpr std::size_t kRegionSetBytes = std::size_t{1} << 20;
// Targets in a batch of Forward scores, if nothing else is kept.
constexpr std::size_t kFilterSet = 64;

// E->C and E->J are the same at any length.
const LengthModel kMultihit = length_model(1, true);

constexpr float kNoScore = std::numeric_limits<float>::quiet_NaN();

struct TargetWork {
  const TargetView* target = nullptr;
  const ParsedTarget* parsed = nullptr;  // null: not known yet
  std::unique_ptr<LongTarget> in_parts;  // null: parsed with all rows kept
  const Job* job = nullptr;              // used by the parsers, if they were needed
  float* correction = nullptr;           // null2 in nats, [L + 1]
  float forward_nats = 0;
  bool dropped = false;
  std::size_t first_region = 0, region_count = 0;
  TargetScore score;

  std::span<const Residue> part(int i, int j) const {
    return target->residues.subspan(static_cast<std::size_t>(i - 1),
                                    static_cast<std::size_t>(j - i + 1));
  }
};

// A region, and later its outcome: one envelope, or those of its clusters.
struct RegionWork {
  std::size_t target;
  Region region;
  const ParsedRegion* found;  // null: not known yet
  std::size_t first_envelope = 0, envelope_count = 0;
};

struct EnvelopeWork {
  std::size_t target;
  int i, j;
  bool clustered;
  const ScoredEnvelope* found;  // null: not known yet
  bool scored = false;
  Domain domain{};
};

}  // namespace

struct Workspace::State {
  DomainTimes times;
  AlignedArray<float> cells, correction;
  Lanes all, passed;  // for the parsers: before and after the filter
  std::vector<Job> all_jobs, passed_jobs;
  AlignedArray<Occupancy> occupancy;
  std::vector<ZeroPages<float>> long_corrections;
  std::vector<TargetWork> targets;
  std::vector<Region> regions;
  std::vector<RegionWork> region_work;
  std::vector<EnvelopeWork> envelopes;
  std::vector<Cluster> clusters;
  Ensemble ensemble;
  Clustering clustering;
  EnvelopeScorer scorer;
  Aligner aligner;
  LinearCongruential random{42};
  bool seeded = false;  // the generator has been started and will not be reset
};

Workspace::Workspace() : state_(make_hidden<State>()) {}
const DomainTimes& Workspace::times() const { return state_->times; }

void Workspace::release_memory() {
  auto fresh = make_hidden<State>();
  fresh->times = state_->times;
  fresh->random = state_->random;
  fresh->seeded = state_->seeded;
  state_ = std::move(fresh);
}

DomainTimes& DomainTimes::operator+=(const DomainTimes& other) {
  for (DomainPass DomainTimes::*const pass :
       {&DomainTimes::forward, &DomainTimes::backward, &DomainTimes::decoding,
        &DomainTimes::ensemble, &DomainTimes::clustering, &DomainTimes::envelope,
        &DomainTimes::alignment})
    this->*pass += other.*pass;
  return *this;
}

namespace {

// Everything after the Forward filter for some targets of one model, stage by stage, so that the
// same work on different targets can share vectors.
class Batch {
 public:
  /// `parse`, `sample`: emissions for the parsers and for sampled traces.
  Batch(const ForwardTables& model, const EmissionRows& parse, const EmissionRows& sample,
        const DomainOptions& options, Workspace::State& state)
      : model_(model),
        t_(model.tables()),
        parse_(parse),
        sample_(sample),
        options_(options),
        s_(state) {}

  void run(std::span<const TargetView> targets, const PassesForward& passes,
           std::span<const ParsedTarget* const> parsed, const WantedTarget& wanted,
           std::span<float> forward_nats, std::span<std::optional<TargetScore>> results) {
    find(targets, passes, parsed, forward_nats);
    score_envelopes();
    for (std::size_t n = 0; n < targets.size(); ++n) {
      TargetWork& work = s_.targets[n];
      results[n].reset();
      if (!work.dropped) finish(work);
      if (!work.dropped && (!wanted || wanted(n, work.score))) results[n] = std::move(work.score);
    }
    s_.long_corrections.clear();
  }

  /// Finds the envelopes of the targets that pass.
  void find(std::span<const TargetView> targets, const PassesForward& passes,
            std::span<const ParsedTarget* const> parsed, std::span<float> forward_nats) {
    take(targets, parsed);
    forward();
    for (std::size_t n = 0; n < targets.size(); ++n) {
      TargetWork& work = s_.targets[n];
      forward_nats[n] = work.forward_nats;
      work.dropped = std::isnan(work.forward_nats) || !passes(n, work.forward_nats);
      if (work.dropped) work.in_parts.reset();
    }
    backward();
    find_regions();
    cluster_regions();
    collect_envelopes();
  }

 private:
  void take(std::span<const TargetView> targets, std::span<const ParsedTarget* const> parsed) {
    s_.targets.clear();
    s_.targets.resize(targets.size());
    s_.long_corrections.clear();
    std::size_t rows = 0;
    for (const TargetView& target : targets)
      if (!is_long(target.length())) rows += static_cast<std::size_t>(target.length()) + 1;
    s_.correction.zero(rows + 1);
    float* correction = s_.correction.data();
    for (std::size_t n = 0; n < targets.size(); ++n) {
      TargetWork& work = s_.targets[n];
      const int L = targets[n].length();
      work.target = &targets[n];
      work.dropped = L == 0;
      if (!parsed.empty()) work.parsed = parsed[n];
      if (is_long(L)) {
        // Elements outside the regions stay zero, so their pages take no memory.
        s_.long_corrections.emplace_back(L + 1);
        work.correction = s_.long_corrections.back().data();
      } else {
        work.correction = correction;
        correction += L + 1;
      }
    }
  }

  void forward() {
    Stopwatch watch(s_.times.forward);
    s_.all_jobs.clear();
    for (std::size_t n = 0; n < s_.targets.size(); ++n) {
      TargetWork& work = s_.targets[n];
      work.forward_nats = work.parsed != nullptr ? work.parsed->forward_nats : kNoScore;
      if (work.dropped || work.parsed != nullptr) continue;
      const int L = work.target->length();
      const Job job = make_job(work.target->residues, length_model(L, true), n);
      if (is_long(L)) {
        work.in_parts = std::make_unique<LongTarget>(t_, job, options_.rows_of_part, kMultihit.ec,
                                                     kMultihit.ej);
        watch.add_cells({&job, 1}, t_.M);
        work.forward_nats = work.in_parts->forward();
      } else {
        s_.all_jobs.push_back(job);
      }
    }
    if (s_.all_jobs.empty()) return;
    watch.add_cells(s_.all_jobs, t_.M);
    longest_first(s_.all_jobs);
    run_forward(t_, parse_, s_.all_jobs, kMultihit, s_.all, s_.cells);
    for (const Job& job : s_.all_jobs)
      s_.targets[job.owner].forward_nats = forward_score(s_.all, job);
  }

  void backward() {
    Stopwatch watch(s_.times.backward);
    s_.passed_jobs = s_.all_jobs;
    std::erase_if(s_.passed_jobs, [&](const Job& job) { return s_.targets[job.owner].dropped; });
    if (s_.passed_jobs.empty()) return;
    watch.add_cells(s_.passed_jobs, t_.M);
    const Kernels& kernel = deal(parse_, s_.passed_jobs, s_.passed);
    auto passed = s_.passed_jobs.begin();
    for (const Job& job : s_.all_jobs) {
      if (s_.targets[job.owner].dropped) continue;
      s_.passed.copy_forward(*passed, s_.all, job);
      s_.targets[job.owner].job = &*passed++;
    }
    kernel.backward(t_, s_.passed, s_.passed.rows - 1, 0, kMultihit.ec, kMultihit.ej,
                    s_.cells.ensure(kernel.scratch(t_.Q)));
  }

  // Appends the regions to s_.regions. False if decoding overflows.
  bool decode(TargetWork& work) {
    if (work.in_parts != nullptr) {
      const auto in_parts = std::move(work.in_parts);
      return in_parts->find_regions(s_.regions, work.score.expected_domains);
    }
    const int L = work.target->length();
    Occupancy* const occupancy = s_.occupancy.ensure(L + 1);
    occupancy[0] = {0, 0, 0};
    const SpecialRows backward = s_.passed.backward_of(*work.job);
    const float scale = decode_rows(*work.job, s_.passed.forward_of(*work.job), backward, L,
                                    inverse_of(backward[0].N), occupancy);
    if (std::isinf(scale)) return false;
    work.score.expected_domains = occupancy[L].begins;
    RegionSearch search;
    domain::find_regions(occupancy, 0, 0, L, search, s_.regions);
    return true;
  }

  void find_regions() {
    const Stopwatch watch(s_.times.decoding);
    s_.region_work.clear();
    for (std::size_t n = 0; n < s_.targets.size(); ++n) {
      TargetWork& work = s_.targets[n];
      work.first_region = s_.region_work.size();
      if (work.dropped) continue;
      if (work.parsed != nullptr) {
        work.dropped = !work.parsed->decoded;
        work.score.expected_domains = work.parsed->expected_domains;
        for (const ParsedRegion& r : work.parsed->regions)
          s_.region_work.push_back({n, {r.first, r.last, r.multidomain}, &r});
      } else {
        s_.regions.clear();
        work.dropped = !decode(work);
        for (const Region& region : s_.regions) s_.region_work.push_back({n, region, nullptr});
      }
      if (work.dropped) s_.region_work.resize(work.first_region);
      work.region_count = s_.region_work.size() - work.first_region;
    }
  }

  std::size_t max_matrix_bytes() const {
    static const std::size_t half_of_memory = static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) *
                                              static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) / 2;
    return options_.max_matrix_bytes > 0 ? options_.max_matrix_bytes : half_of_memory;
  }

  void check_matrix(const TargetWork& work, int L, std::size_t bytes) const {
    const std::size_t with_headroom = bytes / 4 * 5;
    if (with_headroom <= max_matrix_bytes()) return;
    throw MatrixTooLarge(
        fmt::format("a region of {} residues of target {} needs {} MiB for model {} (M={}), more "
                    "than the {} MiB "
                    "allowed",
                    L, work.target->name, with_headroom >> 20, model_.model().hmm.name, t_.M,
                    max_matrix_bytes() >> 20));
  }

  // Samples traces and clusters for regions of similar length, whose Forward passes share vectors.
  void sample(std::span<Job> jobs) {
    const Kernels& kernel = deal(sample_, jobs, s_.all, static_cast<int>(jobs.size()));
    const MatrixLayout layout = MatrixLayout::of(t_.Q, kernel.groups);
    float* const cells = s_.cells.ensure(static_cast<std::size_t>(s_.all.rows) * layout.row);
    {
      Stopwatch watch(s_.times.ensemble);
      watch.add_cells(jobs, t_.M);
      kernel.forward(t_, s_.all, 0, s_.all.rows - 1, kMultihit.ec, kMultihit.ej, cells, layout.row);
    }
    for (const Job& job : jobs) {
      RegionWork& r = s_.region_work[job.owner];
      if (options_.reseed || !s_.seeded) s_.random.reseed(options_.seed);
      s_.seeded = true;
      const std::vector<Segment>* segments;
      {
        const Stopwatch watch(s_.times.ensemble);
        const float* const first =
            cells + static_cast<std::size_t>(job.start) * layout.row + job.group * kLanes;
        segments = &s_.ensemble.sample(
            {&t_, &job, s_.all.forward_of(job), first, layout, kMultihit.ec, kMultihit.ej},
            s_.random, r.region.i - 1,
            options_.null2 ? s_.targets[r.target].correction + r.region.i : nullptr);
      }
      const Stopwatch watch(s_.times.clustering);
      const std::vector<Cluster>& clusters = s_.clustering.run(*segments, Ensemble::kTraces);
      r.first_envelope = s_.clusters.size();
      r.envelope_count = clusters.size();
      s_.clusters.insert(s_.clusters.end(), clusters.begin(), clusters.end());
    }
  }

  // The device's sampled traces of a region with several domains, or null. Unusable if the
  // generator is never reset, because its numbers then depend on all previous regions.
  const SampledRegion* sampled(const RegionWork& r) const {
    return options_.reseed && r.found != nullptr && r.found->sampled ? &*r.found->sampled : nullptr;
  }

  void cluster_regions() {
    s_.clusters.clear();
    std::vector<Job>& jobs = s_.all_jobs;
    jobs.clear();
    for (std::size_t n = 0; n < s_.region_work.size(); ++n) {
      const RegionWork& r = s_.region_work[n];
      TargetWork& work = s_.targets[r.target];
      ++work.score.regions;
      if (!r.region.multidomain) continue;
      ++work.score.clustered;
      const auto residues = work.part(r.region.i, r.region.j);
      check_matrix(work, static_cast<int>(residues.size()),
                   (residues.size() + 1) * MatrixLayout::of(t_.Q, 1).row * sizeof(float));
      if (sampled(r) == nullptr) {
        jobs.push_back(make_job(residues, length_model(work.target->length(), true), n));
      } else if (options_.null2) {
        Ensemble::to_correction(sampled(r)->null2_sums, work.correction + r.region.i);
      }
    }
    longest_first(jobs);
    for (std::size_t at = 0; at < jobs.size();) {
      const auto rows = static_cast<std::size_t>(jobs[at].L) + 2;
      auto count = std::min<std::size_t>(kMaxGroups, jobs.size() - at);
      const auto bytes = [&] {
        return rows * MatrixLayout::of(t_.Q, static_cast<int>(count)).row * sizeof(float);
      };
      while (count > 1 && bytes() > kRegionSetBytes) count /= 2;
      sample(std::span(jobs).subspan(at, count));
      at += count;
    }
  }

  // In the order of the targets and their regions.
  void collect_envelopes() {
    s_.envelopes.clear();
    const auto found = [](const std::optional<ScoredEnvelope>& envelope) {
      return envelope ? &*envelope : nullptr;
    };
    for (RegionWork& r : s_.region_work) {
      const std::size_t first = s_.envelopes.size();
      if (const SampledRegion* const known = sampled(r); known != nullptr) {
        for (const SampledRegion::Cluster& c : known->clusters)
          s_.envelopes.push_back({r.target, c.first, c.last, true, found(c.envelope)});
      } else if (r.region.multidomain) {
        for (std::size_t c = r.first_envelope; c < r.first_envelope + r.envelope_count; ++c)
          s_.envelopes.push_back({r.target, s_.clusters[c].i, s_.clusters[c].j, true, nullptr});
      } else {
        s_.envelopes.push_back({r.target, r.region.i, r.region.j, false,
                                r.found != nullptr ? found(r.found->envelope) : nullptr});
      }
      r.first_envelope = first;
      r.envelope_count = s_.envelopes.size() - first;
    }
  }

  void correct_by_expectation(const EnvelopeWork& envelope, const float* odds) {
    float all[kMaxCodes], logs[kMaxCodes];
    std::copy_n(odds, t_.K, all);
    complete_null2(*t_.alphabet, all);
    for (int x = 0; x < t_.Kp; ++x) logs[x] = std::log(all[x]);
    const TargetWork& work = s_.targets[envelope.target];
    for (int i = envelope.i; i <= envelope.j; ++i)
      work.correction[i] = logs[work.target->residues[static_cast<std::size_t>(i - 1)]];
  }

  // Uses what decode() has left or, without `choices`, the path that is already known.
  void align(EnvelopeWork& envelope, const AccuracyChoices* choices) {
    const Stopwatch watch(s_.times.alignment);
    Domain& domain = envelope.domain;
    domain.ienv = envelope.i;
    domain.jenv = envelope.j;
    const Hmm& hmm = model_.model().hmm;
    if (choices != nullptr) {
      domain.accuracy_sum = choices->job.decoded.accuracy;
      envelope.scored = s_.aligner.align(*choices, hmm, domain);
    } else {
      domain.accuracy_sum = envelope.found->accuracy;
      const auto residues = s_.targets[envelope.target].part(envelope.i, envelope.j);
      envelope.scored =
          s_.aligner.align(t_, t_.emission, 0, residues.data(), *envelope.found, hmm, domain);
    }
  }

  void take_found(EnvelopeWork& envelope) {
    const ScoredEnvelope& found = *envelope.found;
    envelope.domain.envelope_nats = found.forward_nats;
    envelope.scored = found.sound && !std::isnan(found.forward_nats);
    if (!envelope.scored) return;
    if (options_.null2 && !envelope.clustered) correct_by_expectation(envelope, found.null2.data());
    align(envelope, nullptr);
  }

  Job envelope_job(std::size_t e) const {
    const EnvelopeWork& envelope = s_.envelopes[e];
    const TargetWork& work = s_.targets[envelope.target];
    const Job job =
        make_job(work.part(envelope.i, envelope.j), length_model(work.target->length(), false), e);
    check_matrix(work, job.L, EnvelopeScorer::choice_bytes(model_, job.L));
    return job;
  }

  // `sums`: null2 by expectation.
  void score(std::vector<Job>&& jobs, bool sums) {
    s_.scorer.start(model_, t_.emission, std::move(jobs), sums, max_matrix_bytes());
    for (;;) {
      std::span<const Job> set;
      {
        Stopwatch watch(s_.times.envelope);
        set = s_.scorer.next();
        watch.add_cells(set, t_.M);
      }
      if (set.empty()) return;
      for (const Job& job : set) {
        EnvelopeWork& envelope = s_.envelopes[job.owner];
        envelope.domain.envelope_nats = s_.scorer.forward_nats(job);
        envelope.scored = job.decoded.sound && !std::isnan(envelope.domain.envelope_nats);
        if (!envelope.scored) continue;
        if (sums) correct_by_expectation(envelope, job.decoded.null2.data());
        const AccuracyChoices choices = s_.scorer.choices(job);
        align(envelope, &choices);
      }
    }
  }

  void score_envelopes() {
    std::vector<Job> jobs[2];  // by sums: clusters already have their null2
    for (std::size_t e = 0; e < s_.envelopes.size(); ++e) {
      EnvelopeWork& envelope = s_.envelopes[e];
      if (envelope.found != nullptr) {
        take_found(envelope);
      } else {
        jobs[options_.null2 && !envelope.clustered].push_back(envelope_job(e));
      }
    }
    for (const bool sums : {false, true}) score(std::move(jobs[sums]), sums);
  }

  void finish(TargetWork& work) {
    TargetScore& score = work.score;
    score.envelopes = score.overlaps = 0;
    score.domains.clear();
    for (std::size_t n = work.first_region; n < work.first_region + work.region_count; ++n) {
      const RegionWork& r = s_.region_work[n];
      int last_end = 0;
      for (std::size_t e = r.first_envelope; e < r.first_envelope + r.envelope_count; ++e) {
        EnvelopeWork& envelope = s_.envelopes[e];
        ++score.envelopes;
        if (envelope.clustered && envelope.i <= last_end) ++score.overlaps;
        if (!envelope.scored) continue;
        last_end = envelope.j;
        float sum = 0;
        for (int i = envelope.i; i <= envelope.j; ++i) sum += work.correction[i];
        envelope.domain.ienv = envelope.i;
        envelope.domain.jenv = envelope.j;
        envelope.domain.correction_nats = sum;
        score.domains.push_back(std::move(envelope.domain));
      }
    }
    work.dropped = score.domains.empty();
    if (!work.dropped)
      score_target(model_.model(), options_.null2, work.target->length(), work.forward_nats,
                   work.correction, score);
  }

  bool is_long(int L) const { return L > options_.longest_in_one; }

  const ForwardTables& model_;
  const ForwardTables::Tables& t_;
  const EmissionRows& parse_;
  const EmissionRows& sample_;
  const DomainOptions& options_;
  Workspace::State& s_;
};

}  // namespace

void forward_filter_batch(const ForwardTables& model,
                          std::span<const std::span<const Residue>> targets,
                          std::span<float> scores, Workspace& workspace) {
  Workspace::State& s = workspace.state();
  const ForwardTables::Tables& t = model.tables();
  const Stopwatch watch(s.times.forward);
  const DomainOptions defaults;
  std::vector<Job>& jobs = s.all_jobs;
  jobs.clear();
  for (std::size_t n = 0; n < targets.size(); ++n) {
    const int L = static_cast<int>(targets[n].size());
    const Job job = make_job(targets[n], length_model(L, true), n);
    if (L > defaults.longest_in_one) {
      scores[n] = LongTarget(t, job, defaults.rows_of_part, kMultihit.ec, kMultihit.ej).forward();
    } else {
      jobs.push_back(job);
    }
  }
  longest_first(jobs);
  for (std::size_t at = 0; at < jobs.size(); at += kFilterSet) {
    const auto set = std::span(jobs).subspan(at, std::min(kFilterSet, jobs.size() - at));
    run_forward(t, t.emission, set, kMultihit, s.all, s.cells);
    for (const Job& job : set) scores[job.owner] = forward_score(s.all, job);
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
  const EmissionRows& emission = model.tables().emission;
  Batch(model, emission, emission, options, workspace.state())
      .run(targets, passes, parsed, wanted, forward_nats, results);
}

void find_envelopes_batch(const ForwardTables& model, const EmissionRows& parse,
                          const EmissionRows& sample, std::span<const TargetView> targets,
                          const PassesForward& passes, const DomainOptions& options,
                          Workspace& workspace, std::span<float> forward_nats,
                          std::span<std::vector<FoundEnvelope>> envelopes,
                          std::span<const ParsedTarget* const> parsed) {
  Workspace::State& s = workspace.state();
  Batch(model, parse, sample, options, s).find(targets, passes, parsed, forward_nats);
  for (auto& of_target : envelopes) of_target.clear();
  for (std::size_t r = 0; r < s.region_work.size(); ++r) {
    const RegionWork& region = s.region_work[r];
    for (std::size_t e = 0; e < region.envelope_count; ++e) {
      const EnvelopeWork& found = s.envelopes[region.first_envelope + e];
      envelopes[region.target].push_back(
          {found.i, found.j, r - s.targets[region.target].first_region});
    }
  }
}

}  // namespace hmmjit::domain
