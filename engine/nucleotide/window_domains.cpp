#include "nucleotide/window_domains.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "core/threads.hpp"
#include "model/score_statistics.hpp"

namespace hmmjit::nucleotide {
namespace {

// Enough to fill the vectors.
constexpr std::size_t kWindowsOfBatch = 64, kEnvelopesOfBatch = 128;
constexpr std::size_t kMatrixBytes = std::size_t{1} << 30;
// Residues that an envelope may have outside its alignment, on each side.
constexpr int kFlank = 20;
constexpr int kShortestAlignment = 8;

// An envelope, in residues of its window.
struct Envelope {
  std::size_t window = 0;
  int first = 0, last = 0;
  std::optional<domain::Domain> domain = std::nullopt;

  int length() const { return last - first + 1; }
};

class Finder {
 public:
  Finder(const WindowModel& filters, DomainModel& model, const Options& options,
         std::span<const std::span<const Residue>> sequences, std::span<const Window> windows,
         std::span<const ParsedWindows> parsed, DomainScratch& scratch, domain::DomainTimes& times)
      : filters_(filters),
        model_(model),
        options_(options),
        windows_(windows),
        parsed_(parsed),
        s_(scratch),
        times_(times),
        to_find_(options.domain),
        passed_(windows.size(), 0) {
    to_find_.null2 = false;  // by traces: not used
    for (const Window& w : windows)
      views_.push_back({w.part_of(sequences[w.sequence]), {}, {}, {}});
    std::vector<std::span<const Residue>> residues;
    for (const TargetView& view : views_) residues.push_back(view.residues);
    bias_.assign(views_.size(), 0.0f);
    if (!options.bias) return;
    filters.tables.bias_filter_batch(residues, bias_);
    for (std::size_t n = 0; n < bias_.size(); ++n) bias_[n] -= null_score(views_[n].length());
  }

  // Emissions change with the first envelope in a sequence.
  void run(std::uint64_t& turns) {
    for (std::size_t at = 0; at < windows_.size();) {
      const auto before = model_.emissions.after(turns);
      const auto after = options_.domain.null2 ? model_.emissions.after(turns + 1) : before;
      if (before == after) return batches(at, windows_.size(), *before, *before);
      // All windows up to the first with an envelope see the emissions of the beginning.
      const std::size_t count = std::min(kWindowsOfBatch, windows_.size() - at);
      const Found found = find(at, count, *before, *before);
      const auto first = std::ranges::find_if(found, [](const auto& of) { return !of.empty(); });
      at += static_cast<std::size_t>(first - found.begin());
      if (first == found.end()) continue;
      score_all(at, {resampled(at, *first, *before, *after)}, *before, *after);
      const std::size_t sequence = windows_[at++].sequence, rest = at;
      while (at < windows_.size() && windows_[at].sequence == sequence) ++at;
      batches(rest, at, *before, *after);
      ++turns;
    }
  }

  void count(Counters& counters) const {
    for (std::size_t n = 0; n < windows_.size(); ++n) {
      if (!passed_[n]) continue;
      const Window& w = windows_[n];
      std::int64_t residues = w.length;
      if (n > 0 && passed_[n - 1] && windows_[n - 1].group == w.group)
        residues -= std::max<std::int64_t>(0, windows_[n - 1].end() - w.start);
      counters.forward += static_cast<std::uint64_t>(residues);
    }
  }

  std::vector<WindowDomain> take() { return std::move(domains_); }

 private:
  bool passes(std::size_t n, float forward_nats) {
    const int L = views_[n].length();
    const auto filter_nats = static_cast<float>(
        static_cast<double>(null_score(L)) +
        static_cast<double>(bias_[n]) * static_cast<double>(bias_share(L, options_.B3)));
    const Calibration& c = filters_.model.hmm.calibration;
    const double P = exponential_survival(
        static_cast<double>(nats_to_bits(forward_nats - filter_nats)),
        static_cast<double>(c.forward_tau), static_cast<double>(c.forward_lambda));
    passed_[n] = !(P > options_.F3);
    return passed_[n] != 0;
  }

  using Envelopes = std::vector<domain::FoundEnvelope>;
  using Found = std::vector<Envelopes>;  // by window

  // `parse`: emissions of Forward, `sample`: of traces.
  Found find(std::size_t first, std::size_t count, const EmissionState& parse,
             const EmissionState& sample) {
    Found found(count);
    std::vector<float> nats(count);
    std::vector<const ParsedTarget*> parsed;
    for (const ParsedWindows& known : parsed_) {
      if (&parse != known.emissions.get() || &sample != &parse) continue;
      for (std::size_t n = first; n < first + count; ++n) parsed.push_back(known.windows[n].get());
    }
    domain::find_envelopes_batch(
        model_.tables, parse.rows, sample.rows, std::span(views_).subspan(first, count),
        [&](std::size_t n, float forward_nats) { return passes(first + n, forward_nats); },
        to_find_, s_.workspace, nats, found, parsed);
    return found;
  }

  // The envelopes of the first window that has any: traces of the regions behind the first with an
  // envelope see the later emissions.
  Envelopes resampled(std::size_t window, Envelopes found, const EmissionState& before,
                      const EmissionState& after) {
    const std::size_t region = found.front().region;
    std::erase_if(found, [&](const auto& e) { return e.region != region; });
    const Found again = find(window, 1, before, after);
    for (const auto& e : again[0])
      if (e.region > region) found.push_back(e);
    return found;
  }

  // Windows `at` to `end - 1`, whose Forward and scores see `later`; `base`: emissions at the
  // beginning of the sequence.
  void batches(std::size_t at, std::size_t end, const EmissionState& base,
               const EmissionState& later) {
    for (; at < end; at += kWindowsOfBatch)
      score_all(at, find(at, std::min(kWindowsOfBatch, end - at), later, later), base, later);
  }

  void score_all(std::size_t first, const Found& found, const EmissionState& base,
                 const EmissionState& later) {
    std::vector<Envelope> envelopes;
    for (std::size_t n = 0; n < found.size(); ++n)
      for (const auto& e : found[n]) envelopes.push_back({first + n, e.first, e.last});
    for (std::size_t at = 0; at < envelopes.size(); at += kEnvelopesOfBatch)
      score(std::span(envelopes).subspan(at, std::min(kEnvelopesOfBatch, envelopes.size() - at)),
            base, later);
  }

  std::span<const Residue> residues_of(const Envelope& e) const {
    return views_[e.window].residues.subspan(static_cast<std::size_t>(e.first - 1),
                                             static_cast<std::size_t>(e.length()));
  }

  domain::Job job_of(const Envelope& e, std::size_t owner) const {
    const auto residues = residues_of(e);
    const LengthModel odds = length_model(e.length(), false);
    domain::Job job;
    job.residues = residues.data();
    job.L = e.length();
    job.loop = odds.loop;
    job.move = odds.move;
    job.owner = owner;
    return job;
  }

  void score(std::span<Envelope> envelopes, const EmissionState& base, const EmissionState& later) {
    std::vector<std::size_t> all(envelopes.size()), trimmed;
    for (std::size_t n = 0; n < all.size(); ++n) all[n] = n;
    align(envelopes, all, base, later);
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
    align(envelopes, trimmed, base, later);
    if (options_.domain.null2) take_bias(envelopes, later);
    for (Envelope& e : envelopes)
      if (e.domain) finish(e);
  }

  // Scores and alignments of some envelopes with their own emissions.
  void align(std::span<Envelope> envelopes, std::span<const std::size_t> chosen,
             const EmissionState& base, const EmissionState& later) {
    if (chosen.empty()) return;
    std::vector<domain::Job> jobs;
    const bool own = options_.domain.null2;
    int rows = domain::kCodeRows;  // without a meaning: all zero
    for (const std::size_t n : chosen) {
      jobs.push_back(job_of(envelopes[n], n));
      if (!own) continue;
      jobs.back().first_row = rows;
      rows += model_.emissions.rows_of(residues_of(envelopes[n]));
    }
    if (own) {
      const int Q = model_.tables.tables().Q;
      s_.rows.odds.ensure(static_cast<std::size_t>(rows * Q * domain::kLanes));
      s_.rows.deletion_bound.ensure(static_cast<std::size_t>(rows));
      s_.rows.zero(domain::kCodeRows, Q);
      for (std::size_t j = 0; j < jobs.size(); ++j) {
        const Envelope& e = envelopes[chosen[j]];
        const int end = j + 1 < jobs.size() ? jobs[j + 1].first_row : rows;
        const Background background = estimate_background(
            *model_.tables.tables().alphabet, residues_of(e), views_[e.window].length());
        model_.emissions.estimate(base, background, jobs[j].first_row, end - jobs[j].first_row,
                                  s_.rows);
      }
    }
    s_.scorer.start(
        model_.tables, own ? s_.rows : later.rows, std::move(jobs), false,
        options_.domain.max_matrix_bytes > 0 ? options_.domain.max_matrix_bytes : kMatrixBytes);
    CoreClock clock;
    for (auto set = s_.scorer.next(); !set.empty(); set = s_.scorer.next()) {
      times_.envelope.seconds += clock.lap();
      for (const domain::Job& job : set) {
        times_.envelope.cells += static_cast<std::uint64_t>(job.L) *
                                 static_cast<std::uint64_t>(model_.tables.tables().M);
        Envelope& e = envelopes[job.owner];
        domain::Domain domain;
        domain.ienv = e.first;
        domain.jenv = e.last;
        domain.envelope_nats = s_.scorer.forward_nats(job);
        domain.accuracy_sum = job.decoded.accuracy;
        e.domain.reset();
        if (!job.decoded.sound || std::isnan(domain.envelope_nats)) continue;
        if (s_.aligner.align(s_.scorer.choices(job), filters_.model.hmm, domain))
          e.domain = std::move(domain);
      }
      times_.alignment.seconds += clock.lap();
    }
  }

  // What the scores lose by the emissions of their envelopes.
  void take_bias(std::span<Envelope> envelopes, const EmissionState& normal) {
    std::vector<domain::Job> jobs;
    for (std::size_t n = 0; n < envelopes.size(); ++n)
      if (envelopes[n].domain) jobs.push_back(job_of(envelopes[n], n));
    if (jobs.empty()) return;
    std::ranges::sort(jobs, [](const domain::Job& a, const domain::Job& b) {
      return a.L != b.L ? a.L > b.L : a.owner < b.owner;
    });
    const domain::ForwardTables::Tables& t = model_.tables.tables();
    const LengthModel odds = length_model(1, false);
    const domain::Kernels& kernel = domain::deal(normal.rows, jobs, s_.lanes);
    kernel.forward(t, s_.lanes, 0, s_.lanes.rows - 1, odds.ec, odds.ej,
                   s_.cells.ensure(kernel.scratch(t.Q)), 0);
    for (const domain::Job& job : jobs) {
      domain::Domain& d = *envelopes[job.owner].domain;
      const float normal_nats = domain::forward_score(s_.lanes, job);
      if (normal_nats < d.envelope_nats) d.envelope_nats = normal_nats;
      d.bias_nats = normal_nats - d.envelope_nats;
    }
  }

  void finish(Envelope& e) {
    domain::Domain& d = *e.domain;
    const int aligned = d.jali - d.iali + 1;
    if (aligned < kShortestAlignment) return;
    const int length = e.length(), W = model_.W, longer = std::max(W, length);
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
    const Calibration& c = filters_.model.hmm.calibration;
    d.log_p =
        exponential_log_survival(static_cast<double>(d.bits), static_cast<double>(c.forward_tau),
                                 static_cast<double>(c.forward_lambda));
    const Window& w = windows_[e.window];
    const auto shift = static_cast<int>(w.start - 1);
    for (int* position : {&d.ienv, &d.jenv, &d.iali, &d.jali}) *position += shift;
    domains_.push_back({w.sequence, std::move(d)});
  }

  const WindowModel& filters_;
  DomainModel& model_;
  const Options& options_;
  std::span<const Window> windows_;
  std::span<const ParsedWindows> parsed_;
  DomainScratch& s_;
  domain::DomainTimes& times_;  // of envelopes and alignments; others in the workspace
  domain::DomainOptions to_find_;
  std::vector<TargetView> views_;
  std::vector<float> bias_;
  std::vector<std::uint8_t> passed_;
  std::vector<WindowDomain> domains_;
};

}  // namespace

std::vector<WindowDomain> find_domains(const WindowModel& filters, DomainModel& model,
                                       const Options& options,
                                       std::span<const std::span<const Residue>> sequences,
                                       std::span<const Window> windows,
                                       std::span<const ParsedWindows> parsed, std::uint64_t& turns,
                                       DomainScratch& scratch, Counters& counters, Times& times) {
  CoreClock clock;
  Finder finder(filters, model, options, sequences, windows, parsed, scratch, times.domain);
  finder.run(turns);
  finder.count(counters);
  times.domain_seconds += clock.lap();
  return finder.take();
}

}  // namespace hmmjit::nucleotide
