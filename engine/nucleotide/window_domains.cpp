#include "nucleotide/window_domains.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "core/threads.hpp"
#include "model/score_statistics.hpp"

namespace hmmjit::nucleotide {
namespace {

// Large enough to fill the vectors.
constexpr std::size_t kWindowsOfBatch = 64, kEnvelopesOfBatch = 128;
constexpr std::size_t kMatrixBytes = std::size_t{1} << 30;
// Maximum residues of an envelope outside its alignment, on each side.
constexpr int kFlank = 20;
constexpr int kShortestAlignment = 8;

std::vector<TargetView> views_of(const DomainContext& context) {
  std::vector<TargetView> views;
  for (const Window& w : context.windows)
    views.push_back({w.part_of(context.sequences[w.sequence]), {}, {}, {}});
  return views;
}

class Finder {
 public:
  Finder(const DomainContext& context, std::span<const ParsedWindows> parsed)
      : c_(context),
        parsed_(parsed),
        to_find_(c_.options.domain),
        views_(views_of(context)),
        passed_(c_.windows.size(), 0) {
    to_find_.null2 = false;  // null2 by traces is not used
    std::vector<std::span<const Residue>> residues;
    for (const TargetView& view : views_) residues.push_back(view.residues);
    bias_.assign(views_.size(), 0.0f);
    if (!c_.options.bias) return;
    c_.filters.tables.bias_filter_batch(residues, bias_);
    for (std::size_t n = 0; n < bias_.size(); ++n) bias_[n] -= null_score(views_[n].length());
  }

  // Emissions change after the first envelope in a sequence.
  void run(std::uint64_t& turns) {
    for (std::size_t at = 0; at < c_.windows.size() && !c_.options.cancelled();) {
      const auto before = c_.model.emissions.after(turns);
      const auto after = c_.options.domain.null2 ? c_.model.emissions.after(turns + 1) : before;
      if (before == after) return batches(at, c_.windows.size(), *before, *before);
      // Up to the first window with an envelope, windows use the initial emissions.
      const std::size_t count = std::min(kWindowsOfBatch, c_.windows.size() - at);
      const Found found = find(at, count, *before, *before);
      const auto first = std::ranges::find_if(found, [](const auto& of) { return !of.empty(); });
      at += static_cast<std::size_t>(first - found.begin());
      if (first == found.end()) continue;
      keep(at, {resampled(at, *first, *before, *after)}, *before, *after);
      const std::size_t sequence = c_.windows[at++].sequence, rest = at;
      while (at < c_.windows.size() && c_.windows[at].sequence == sequence) ++at;
      batches(rest, at, *before, *after);
      ++turns;
    }
  }

  void count(FilterCounters& counters) const {
    for (std::size_t n = 0; n < c_.windows.size(); ++n) {
      if (!passed_[n]) continue;
      const Window& w = c_.windows[n];
      std::int64_t residues = w.length;
      if (n > 0 && passed_[n - 1] && c_.windows[n - 1].group == w.group)
        residues -= std::max<std::int64_t>(0, c_.windows[n - 1].end() - w.start);
      counters.forward += static_cast<std::uint64_t>(residues);
    }
  }

  std::vector<Envelope> take() { return std::move(envelopes_); }

 private:
  bool passes(std::size_t n, float forward_nats) {
    const int L = views_[n].length();
    const auto filter_nats = static_cast<float>(
        static_cast<double>(null_score(L)) +
        static_cast<double>(bias_[n]) * static_cast<double>(bias_share(L, c_.options.B3)));
    const Calibration& c = c_.filters.model.hmm.calibration;
    const double P = exponential_survival(
        static_cast<double>(nats_to_bits(forward_nats - filter_nats)),
        static_cast<double>(c.forward_tau), static_cast<double>(c.forward_lambda));
    passed_[n] = !(P > c_.options.F3);
    return passed_[n] != 0;
  }

  using Envelopes = std::vector<domain::FoundEnvelope>;
  using Found = std::vector<Envelopes>;  // by window

  // `parse`: emissions for Forward, `sample`: for traces.
  Found find(std::size_t first, std::size_t count, const EmissionState& parse,
             const EmissionState& sample) {
    Found found(count);
    std::vector<float> nats(count);
    std::vector<const ParsedTarget*> parsed;
    gpu::UsedKernels kernels;
    for (const ParsedWindows& known : parsed_) {
      if (&parse != known.emissions.get() || &sample != &parse) continue;
      kernels = known.kernels;
      for (std::size_t n = first; n < first + count; ++n) parsed.push_back(known.windows[n].get());
    }
    domain::find_envelopes_batch(
        c_.model.tables, parse.rows, sample.rows, std::span(views_).subspan(first, count),
        [&](std::size_t n, float forward_nats) { return passes(first + n, forward_nats); },
        to_find_, c_.scratch.workspace, nats, found, parsed);
    // With --seed 0 the generator is not reseeded: a second run would sample other traces.
    if (c_.verifier == nullptr || parsed.empty() || !to_find_.reseed) return found;
    for (int piece = 0; piece < c_.verifier->pieces(); ++piece) {
      const std::size_t n = c_.verifier->choose(count);
      if (parsed[n] != nullptr) check(first + n, parse, nats[n], found[n], *kernels);
    }
    return found;
  }

  // Compares a device's findings in a window with the CPU's envelopes.
  void check(std::size_t window, const EmissionState& emissions, float nats, const Envelopes& found,
             const std::vector<gpu::UsedKernel>& kernels) {
    const TargetView& view = views_[window];
    c_.verifier->check_piece(
        c_.filters.model, kernels,
        static_cast<std::uint64_t>(view.length()) *
            static_cast<std::uint64_t>(c_.filters.model.hmm.M),
        [&]() -> std::optional<search_run::Difference> {
          domain::Workspace workspace;
          float again = 0;
          Envelopes envelopes;
          domain::find_envelopes_batch(
              c_.model.tables, emissions.rows, emissions.rows, {&view, 1},
              [&](std::size_t, float forward_nats) { return passes(window, forward_nats); },
              to_find_, workspace, {&again, 1}, {&envelopes, 1});
          if ((nats == again || (std::isnan(nats) && std::isnan(again))) && envelopes == found)
            return {};
          const auto parts = [](float forward_nats, const Envelopes& of) {
            std::vector<std::string> out{
                fmt::format("{} nats, {} envelopes", forward_nats, of.size())};
            for (const domain::FoundEnvelope& e : of)
              out.push_back(fmt::format("envelope {}-{} of region {}", e.first, e.last, e.region));
            return out;
          };
          return search_run::first_difference(plan::Stage::kParser, {}, parts(nats, found),
                                              parts(again, envelopes));
        });
  }

  // The envelopes of the first window with any. Regions after the first region with an envelope
  // sample traces with the later emissions.
  Envelopes resampled(std::size_t window, Envelopes found, const EmissionState& before,
                      const EmissionState& after) {
    const std::size_t region = found.front().region;
    std::erase_if(found, [&](const auto& e) { return e.region != region; });
    const Found again = find(window, 1, before, after);
    for (const auto& e : again[0])
      if (e.region > region) found.push_back(e);
    return found;
  }

  // Windows `at` to `end - 1`, whose Forward and scores use `later`; `base`: emissions at the
  // beginning of the sequence.
  void batches(std::size_t at, std::size_t end, const EmissionState& base,
               const EmissionState& later) {
    for (; at < end && !c_.options.cancelled(); at += kWindowsOfBatch)
      keep(at, find(at, std::min(kWindowsOfBatch, end - at), later, later), base, later);
  }

  void keep(std::size_t first, const Found& found, const EmissionState& base,
            const EmissionState& later) {
    for (std::size_t n = 0; n < found.size(); ++n)
      for (const auto& e : found[n])
        envelopes_.push_back({first + n, e.first, e.last, &base, &later});
  }

  const DomainContext& c_;
  std::span<const ParsedWindows> parsed_;
  domain::DomainOptions to_find_;
  std::vector<TargetView> views_;
  std::vector<float> bias_;
  std::vector<std::uint8_t> passed_;
  std::vector<Envelope> envelopes_;
};

class Scorer {
 public:
  explicit Scorer(const DomainContext& context)
      : c_(context), s_(context.scratch), times_(context.times.domain), views_(views_of(context)) {}

  EstimatedEnvelopes estimate(std::span<const Envelope> envelopes,
                              std::span<const std::size_t> chosen, bool trimmed) {
    EstimatedEnvelopes out;
    int rows = 0;
    const auto add = [&](const Envelope& e) {
      out.residues.begin_target("", "", "");
      out.residues.append(residues_of(e));
      out.residues.end_target();
    };
    for (const std::size_t n : chosen) {
      add(envelopes[n]);
      out.first_rows.push_back(rows);
      rows += c_.model.emissions.rows_of(residues_of(envelopes[n]));
    }
    out.first_rows.push_back(rows);
    out.rows.odds.ensure(static_cast<std::size_t>(rows) *
                         static_cast<std::size_t>(tables().Q * domain::kLanes));
    out.rows.deletion_bound.ensure(static_cast<std::size_t>(rows));
    for (std::size_t n = 0; n < chosen.size(); ++n)
      estimate(envelopes[chosen[n]], out.first_rows[n], out.first_rows[n + 1], out.rows);
    for (std::size_t n = 0; trimmed && n < envelopes.size(); ++n) {
      if (!envelopes[n].domain) continue;
      add(envelopes[n]);
      out.normal.push_back(n);
      out.normal_rows.push_back(&envelopes[n].later->rows);
    }
    return out;
  }

  // Returns the chosen envelopes that the device did not score.
  std::vector<std::size_t> take_scored(std::span<Envelope> envelopes,
                                       std::span<const std::size_t> chosen,
                                       const EstimatedEnvelopes& estimated,
                                       std::span<const std::optional<ScoredEnvelope>> scored) {
    CoreClock clock;
    std::vector<std::size_t> left;
    for (std::size_t n = 0; n < chosen.size(); ++n) {
      const std::optional<ScoredEnvelope>& found = scored[n];
      if (!found) {
        left.push_back(chosen[n]);
        continue;
      }
      Envelope& e = envelopes[chosen[n]];
      domain::Domain domain = begin_domain(e, found->forward_nats, found->accuracy);
      if (!found->sound || std::isnan(domain.envelope_nats)) continue;
      if (s_.aligner.align(tables(), estimated.rows, estimated.first_rows[n], residues_of(e).data(),
                           *found, c_.filters.model.hmm, domain))
        e.domain = std::move(domain);
    }
    for (std::size_t n = 0; n < estimated.normal.size(); ++n)
      if (const auto& found = scored[chosen.size() + n])
        envelopes[estimated.normal[n]].normal_nats = found->forward_nats;
    times_.alignment.seconds += clock.lap();
    return left;
  }

  // Compares the results in take_scored() with the CPU's alignments.
  void check(std::span<const Envelope> envelopes, std::span<const std::size_t> chosen,
             std::span<const std::optional<ScoredEnvelope>> scored,
             const std::vector<gpu::UsedKernel>& kernels) {
    for (int piece = 0; piece < c_.verifier->pieces() && !chosen.empty(); ++piece) {
      const std::size_t n = c_.verifier->choose(chosen.size());
      const Envelope& taken = envelopes[chosen[n]];
      if (!scored[n]) continue;
      c_.verifier->check_piece(
          c_.filters.model, kernels,
          static_cast<std::uint64_t>(taken.length()) * static_cast<std::uint64_t>(tables().M),
          [&]() -> std::optional<search_run::Difference> {
            Envelope again = taken;
            again.domain.reset();
            const std::size_t only = 0;
            align_batch({&again, 1}, {&only, 1}, *again.later);
            // NaN equals nothing.
            if (again.domain && std::isnan(again.domain->accuracy_sum)) return {};
            if (again.domain == taken.domain) return {};
            const auto parts = [](const Envelope& e) {
              return e.domain ? search_run::parts_of(*e.domain)
                              : std::vector<std::string>{"no domain"};
            };
            return search_run::first_difference(plan::Stage::kEnvelope, {}, parts(taken),
                                                parts(again));
          });
    }
  }

  void align(std::span<Envelope> envelopes, std::span<const std::size_t> chosen) {
    // All envelopes of a batch use the same emissions.
    while (!chosen.empty() && !c_.options.cancelled()) {
      const Envelope& first = envelopes[chosen[0]];
      std::size_t count = 1;
      while (count < std::min(chosen.size(), kEnvelopesOfBatch) &&
             envelopes[chosen[count]].later == first.later)
        ++count;
      align_batch(envelopes, chosen.first(count), *first.later);
      chosen = chosen.subspan(count);
    }
  }

  std::vector<std::size_t> trim(std::span<Envelope> envelopes) const {
    std::vector<std::size_t> trimmed;
    for (std::size_t n = 0; n < envelopes.size(); ++n) {
      Envelope& e = envelopes[n];
      if (!e.domain) continue;
      const int first = std::max(e.first, e.domain->iali - kFlank);
      const int last = std::min(e.last, e.domain->jali + kFlank);
      if (first == e.first && last == e.last) continue;
      e.first = first;
      e.last = last;
      trimmed.push_back(n);
    }
    return trimmed;
  }

  std::vector<WindowDomain> finish(std::span<Envelope> envelopes) {
    for (auto left = envelopes; c_.options.domain.null2 && !left.empty();) {
      std::size_t count = 1;
      while (count < std::min(left.size(), kEnvelopesOfBatch) && left[count].later == left[0].later)
        ++count;
      score_normally(left.first(count), *left[0].later);
      left = left.subspan(count);
    }
    for (Envelope& e : envelopes)
      if (e.domain) finish(e);
    return std::move(domains_);
  }

 private:
  const domain::ForwardTables::Tables& tables() const { return c_.model.tables.tables(); }

  std::span<const Residue> residues_of(const Envelope& e) const {
    return views_[e.window].residues.subspan(static_cast<std::size_t>(e.first - 1),
                                             static_cast<std::size_t>(e.length()));
  }

  domain::Job job_of(const Envelope& e, std::size_t owner) const {
    return domain::make_job(residues_of(e), length_model(e.length(), false), owner);
  }

  void estimate(const Envelope& e, int first_row, int end, domain::EmissionRows& rows) {
    const Background background =
        estimate_background(*tables().alphabet, residues_of(e), views_[e.window].length());
    c_.model.emissions.estimate(*e.base, background, first_row, end - first_row, rows);
  }

  domain::Domain begin_domain(Envelope& e, float nats, float accuracy) const {
    e.domain.reset();
    domain::Domain domain;
    domain.ienv = e.first;
    domain.jenv = e.last;
    domain.envelope_nats = nats;
    domain.accuracy_sum = accuracy;
    return domain;
  }

  // Scores and aligns some envelopes with their own emissions.
  void align_batch(std::span<Envelope> envelopes, std::span<const std::size_t> chosen,
                   const EmissionState& later) {
    std::vector<domain::Job> jobs;
    const bool own = c_.options.domain.null2;
    int rows = domain::kCodeRows;  // rows of unused codes, all zero
    for (const std::size_t n : chosen) {
      jobs.push_back(job_of(envelopes[n], n));
      if (!own) continue;
      jobs.back().first_row = rows;
      rows += c_.model.emissions.rows_of(residues_of(envelopes[n]));
    }
    if (own) {
      const int Q = tables().Q;
      s_.rows.odds.ensure(static_cast<std::size_t>(rows) *
                          static_cast<std::size_t>(Q * domain::kLanes));
      s_.rows.deletion_bound.ensure(static_cast<std::size_t>(rows));
      s_.rows.zero(domain::kCodeRows, Q);
      for (std::size_t j = 0; j < jobs.size(); ++j)
        estimate(envelopes[chosen[j]], jobs[j].first_row,
                 j + 1 < jobs.size() ? jobs[j + 1].first_row : rows, s_.rows);
    }
    s_.scorer.start(
        c_.model.tables, own ? s_.rows : later.rows, std::move(jobs), false,
        c_.options.domain.max_matrix_bytes > 0 ? c_.options.domain.max_matrix_bytes : kMatrixBytes);
    CoreClock clock;
    for (auto set = s_.scorer.next(); !set.empty(); set = s_.scorer.next()) {
      times_.envelope.seconds += clock.lap();
      for (const domain::Job& job : set) {
        times_.envelope.cells += static_cast<std::uint64_t>(job.L) *
                                 static_cast<std::uint64_t>(c_.model.tables.tables().M);
        Envelope& e = envelopes[job.owner];
        domain::Domain domain = begin_domain(e, s_.scorer.forward_nats(job), job.decoded.accuracy);
        if (!job.decoded.sound || std::isnan(domain.envelope_nats)) continue;
        if (s_.aligner.align(s_.scorer.choices(job), c_.filters.model.hmm, domain))
          e.domain = std::move(domain);
      }
      times_.alignment.seconds += clock.lap();
    }
  }

  // Scores envelopes without a device's score, with the model's emissions.
  void score_normally(std::span<Envelope> envelopes, const EmissionState& normal) {
    std::vector<domain::Job> jobs;
    for (std::size_t n = 0; n < envelopes.size(); ++n)
      if (envelopes[n].domain && !envelopes[n].normal_nats) jobs.push_back(job_of(envelopes[n], n));
    if (jobs.empty()) return;
    domain::longest_first(jobs);
    domain::run_forward(tables(), normal.rows, jobs, length_model(1, false), s_.lanes, s_.cells);
    for (const domain::Job& job : jobs)
      envelopes[job.owner].normal_nats = domain::forward_score(s_.lanes, job);
  }

  void finish(Envelope& e) {
    domain::Domain& d = *e.domain;
    // The bias is the difference between the scores with the two sets of emissions.
    if (e.normal_nats) {
      if (*e.normal_nats < d.envelope_nats) d.envelope_nats = *e.normal_nats;
      d.bias_nats = *e.normal_nats - d.envelope_nats;
    }
    const int aligned = d.jali - d.iali + 1;
    if (aligned < kShortestAlignment) return;
    const int length = e.length(), W = c_.model.W, longer = std::max(W, length);
    const auto add = [&](double nats) {
      d.bits = static_cast<float>(static_cast<double>(d.bits) + nats);
    };
    const auto stay = [](int L) {
      return std::log(static_cast<double>(static_cast<float>(L) / static_cast<float>(L + 2)));
    };
    d.bits = d.envelope_nats;
    add(-(2 * std::log(2.0 / (length + 2))));
    add(2 * std::log(2.0 / (W + 2)));
    add(-((length - aligned) * stay(length)));
    add((longer - aligned) * stay(W));
    d.bits = nats_to_bits(d.bits - null_score(longer));
    const Calibration& c = c_.filters.model.hmm.calibration;
    d.log_p =
        exponential_log_survival(static_cast<double>(d.bits), static_cast<double>(c.forward_tau),
                                 static_cast<double>(c.forward_lambda));
    const Window& w = c_.windows[e.window];
    const auto shift = static_cast<int>(w.start - 1);
    for (int* position : {&d.ienv, &d.jenv, &d.iali, &d.jali}) *position += shift;
    domains_.push_back({w.sequence, std::move(d)});
  }

  const DomainContext& c_;
  DomainScratch& s_;
  domain::DomainTimes& times_;  // of envelopes and alignments; other times are in the workspace
  std::vector<TargetView> views_;
  std::vector<WindowDomain> domains_;
};

}  // namespace

DomainProgress find_envelopes(const DomainContext& context, std::span<const ParsedWindows> parsed,
                              std::uint64_t& turns, FilterCounters& counters) {
  CoreClock clock;
  Finder finder(context, parsed);
  finder.run(turns);
  finder.count(counters);
  DomainProgress progress{.found = true, .envelopes = finder.take(), .open = {}};
  for (std::size_t n = 0; n < progress.envelopes.size(); ++n) progress.open.push_back(n);
  context.times.domain_seconds += clock.lap();
  return progress;
}

std::shared_ptr<const EstimatedEnvelopes> estimate_open(const DomainContext& context,
                                                        const DomainProgress& progress) {
  CoreClock clock;
  auto out = std::make_shared<const EstimatedEnvelopes>(
      Scorer(context).estimate(progress.envelopes, progress.open, progress.rounds > 0));
  context.times.domain_seconds += clock.lap();
  return out->residues.size() > 0 ? out : nullptr;
}

void align_open(const DomainContext& context, DomainProgress& progress,
                const EstimatedEnvelopes* estimated,
                std::span<const std::optional<ScoredEnvelope>> scored,
                const gpu::UsedKernels& kernels) {
  CoreClock clock;
  Scorer scorer(context);
  std::vector<std::size_t> left = std::exchange(progress.open, {});
  if (!scored.empty()) {
    const std::vector<std::size_t> chosen =
        std::exchange(left, scorer.take_scored(progress.envelopes, left, *estimated, scored));
    if (context.verifier != nullptr) scorer.check(progress.envelopes, chosen, scored, *kernels);
  }
  scorer.align(progress.envelopes, left);
  if (progress.rounds++ == 0) progress.open = scorer.trim(progress.envelopes);
  context.times.domain_seconds += clock.lap();
}

std::vector<WindowDomain> finish_domains(const DomainContext& context, DomainProgress& progress) {
  CoreClock clock;
  std::vector<WindowDomain> domains = Scorer(context).finish(progress.envelopes);
  context.times.domain_seconds += clock.lap();
  return domains;
}

}  // namespace hmmjit::nucleotide
