#include "nucleotide/search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <functional>
#include <limits>
#include <mutex>
#include <utility>

#include "core/mutex.hpp"
#include "core/per_thread.hpp"
#include "core/threads.hpp"
#include "core/workers.hpp"
#include "nucleotide/device_scan.hpp"
#include "nucleotide/hits.hpp"
#include "nucleotide/pieces.hpp"
#include "nucleotide/window_domains.hpp"

namespace hmmjit::nucleotide {

const std::array<Residue, 256>& complements() {
  static const std::array<Residue, 256> codes = [] {
    std::array<Residue, 256> out;
    for (std::size_t x = 0; x < out.size(); ++x) out[x] = static_cast<Residue>(x);
    constexpr std::string_view kLetters = "ACGTRYMKHDBV", kComplements = "TGCAYRKMDHVB";
    for (std::size_t n = 0; n < kLetters.size(); ++n)
      out[dna_alphabet().digit[static_cast<unsigned char>(kLetters[n])]] =
          dna_alphabet().digit[static_cast<unsigned char>(kComplements[n])];
    return out;
  }();
  return codes;
}

std::vector<Residue> reverse_complement(std::span<const Residue> part) {
  std::vector<Residue> out(part.rbegin(), part.rend());
  for (Residue& code : out) code = complements()[code];
  return out;
}

namespace {

// Residues of a run, unless it is one strand of a piece: enough to fill the vectors.
constexpr std::int64_t kResiduesOfRun = 1 << 17;

// A device takes one model after the other and answers for all windows of a model together.
// Therefore a run's search has steps, and threads take a step of the following models before the
// next step of a model.
enum Step : std::size_t { kFilter, kScan, kEnvelopes, kTrim, kDomains, kSteps };
constexpr std::array<std::size_t, kSteps> kModelsAhead{0, 2, 10, 16, 22};

// One strand of a piece.
struct Unit {
  Piece piece;
  bool bottom = false;
};

// Buffers of one thread.
struct Scratch {
  Times times;  // except those in the workspace
  cpu::FilterScratch filters;
  DomainScratch domains;
  std::vector<StrandPart> parts;
  std::vector<std::span<const Residue>> sequences;
  std::vector<cpu::MarkedRows> marked;
};

// The residues of the units, each in its direction.
std::span<const std::span<const Residue>> sequences_of(std::span<const Unit> units,
                                                       const BlockStrands& strands,
                                                       std::size_t first_target, int window_length,
                                                       Scratch& scratch) {
  scratch.parts.clear();
  scratch.sequences.clear();
  for (const Unit& unit : units) {
    scratch.parts.push_back(
        strands.part(unit.piece.target - first_target, unit.piece, window_length, unit.bottom));
    scratch.sequences.push_back(strands.residues(scratch.parts.back()));
  }
  return scratch.sequences;
}

// A query with its tables. Those of the domain stage are made at the first window: most models of a
// library find none.
struct Model {
  Model(const Query& of, const Options& options) : query(of), filters(query, options) {}
  // Thread-safe.
  DomainModel& domains(Times& times) {
    std::call_once(domains_made, [&] {
      CoreClock clock;
      made_domains.emplace(*query.model, query.window_length);
      times.setup_seconds += clock.lap();
    });
    return *made_domains;
  }
  Query query;
  WindowModel filters;
  std::once_flag domains_made;
  std::optional<DomainModel> made_domains;
};

std::vector<std::unique_ptr<Model>> make_models(std::span<const Query> queries,
                                                const Options& options,
                                                PerThread<Scratch>& scratch) {
  std::vector<std::unique_ptr<Model>> models(queries.size());
  for_each_index(options.threads, queries.size(), [&](std::size_t m) {
    CoreClock clock;
    models[m] = std::make_unique<Model>(queries[m], options);
    scratch.local().times.setup_seconds += clock.lap();
  });
  return models;
}

void add_times(Times& sum, PerThread<Scratch>& scratch) {
  scratch.for_each([&](Scratch& s) {
    sum.setup_seconds += s.times.setup_seconds;
    sum.domain_seconds += s.times.domain_seconds;
    for (domain::DomainPass Times::*const stage :
         {&Times::ssv, &Times::msv, &Times::bias, &Times::viterbi})
      sum.*stage += s.times.*stage;
    sum.domain += s.times.domain;
    sum.domain += s.domains.workspace.times();
  });
}

// Makes a hit with coordinates on the target; from > to on the bottom strand.
Hit make_hit(std::shared_ptr<const Subject> subject, domain::Domain&& d, const Unit& unit,
             int window_length, bool keep_alignment) {
  const auto start = static_cast<int>(unit.piece.start(window_length));
  const auto last = static_cast<int>(unit.piece.last);
  for (int* position : {&d.ienv, &d.jenv, &d.iali, &d.jali})
    *position = unit.bottom ? last - *position + 1 : start + *position - 1;
  if (!keep_alignment) d.alignment = {};
  return {.subject = std::move(subject), .bottom = unit.bottom, .domain = std::move(d)};
}

std::shared_ptr<const Subject> subject_of(const TargetView& target, std::uint64_t index) {
  return std::make_shared<const Subject>(Subject{index, std::string(target.name),
                                                 std::string(target.accession),
                                                 std::string(target.description), target.length()});
}

// Converts an exception of the domain stage to an error.
Status catch_matrix_too_large(const std::function<void()>& work) {
  try {
    work();
  } catch (const domain::MatrixTooLarge& e) {
    return fail(ErrorCode::kResources, e.what(), {}, "use a machine with more memory");
  }
  return {};
}

}  // namespace

Status check(std::string_view model, int M, int window_length) {
  if (M > std::numeric_limits<std::int16_t>::max())
    return fail(ErrorCode::kInput,
                fmt::format("model {} has {} positions; at most 32767 can be searched", model, M),
                {}, "divide the model");
  if (window_length > std::numeric_limits<std::uint16_t>::max())
    return fail(ErrorCode::kInput,
                fmt::format("model {} has windows of {} residues; at most 65535 can be searched",
                            model, window_length),
                {}, "lower its MAXL, or set nhmmer's --w_length");
  return {};
}

// A model's hits depend on the number of earlier restorations of its emissions (emissions.hpp), so
// runs have an order. A run whose predecessors are unfinished guesses this number; after a wrong
// guess, its domains are found again.
struct Search::State {
  struct Run {
    std::size_t first_unit = 0, count = 0;
  };
  struct RunResult {
    std::vector<Candidate> candidates;
    std::vector<Window> windows;
    // Index in the model's current request: of the run's first candidate, then of its first window,
    // finally of the run.
    std::size_t first = 0;
    std::vector<ParsedWindows> parsed;
    DomainProgress progress;
    std::shared_ptr<const EstimatedEnvelopes> asked;  // sent to the device
    FilterCounters counters;
    std::uint64_t turns_before = 0, turns_after = 0;
    std::uint64_t forward = 0;
    std::vector<WindowDomain> domains;
  };
  // A model's runs between two steps.
  struct Handover {
    std::vector<std::unique_ptr<RunResult>> runs;  // null: needs no further steps
    std::size_t to_come = 0;
    bool complete = false;
  };
  struct Progress {
    Mutex mutex;
    std::vector<std::unique_ptr<RunResult>> waiting HMMJIT_GUARDED_BY(mutex);
    std::size_t next HMMJIT_GUARDED_BY(mutex) = 0;
    bool committing HMMJIT_GUARDED_BY(mutex) = false;
    std::uint64_t turns HMMJIT_GUARDED_BY(mutex) = 0;
    // Runs whose envelopes are found and add turns.
    std::vector<std::pair<std::size_t, std::uint64_t>> turned HMMJIT_GUARDED_BY(mutex);
    std::array<Handover, kSteps - 1> handovers HMMJIT_GUARDED_BY(mutex);
    std::vector<std::atomic<bool>> finished;  // by run
    std::condition_variable changed;
    FilterCounters counters HMMJIT_GUARDED_BY(mutex);
    std::vector<FilterCounters> of_targets HMMJIT_GUARDED_BY(mutex);  // by run, i.e. target: scan()
    std::vector<Hit> hits HMMJIT_GUARDED_BY(mutex);
  };

  State(std::vector<Query> queries, const Options& given, DeviceScan* scan,
        search_run::Verifier* checks)
      : options(given),
        device(scan),
        verifier(checks),
        models(make_models(queries, options, scratch)),
        progress(models.size()),
        partitioner(options.partition, options.block_length) {}
  bool scans() const { return options.partition == Partition::kTargets; }

  void cut(const TargetBlock& block);
  bool stopped() const {
    return failed || options.cancelled() || (device != nullptr && device->missing()) ||
           (verifier != nullptr && verifier->failed());
  }
  std::span<const Unit> units_of(const Run& run) const {
    return std::span(units).subspan(run.first_unit, run.count);
  }
  bool reads(bool bottom) const {
    return options.strands != (bottom ? Strands::kTop : Strands::kBottom);
  }
  // The steps. `s` holds the sequences of the run, except in the first step.
  std::unique_ptr<RunResult> filter(std::size_t run, std::size_t model, Scratch& s);
  void scan(std::size_t model, Scratch& s, RunResult& result, std::span<const int> best);
  void finish(std::size_t run, std::size_t model, const TargetBlock& block, Scratch& s,
              std::unique_ptr<RunResult> result);
  void search(std::size_t run, std::size_t model, const TargetBlock& block) {
    const FlushToZeroScope flush;
    Scratch& s = scratch.local();
    auto result = filter(run, model, s);
    scan(model, s, *result, {});
    finish(run, model, block, s, std::move(result));
  }
  // The same steps, with a device between them.
  void take_step(Step step, std::size_t run, std::size_t model, const TargetBlock& block);
  // Null if the run needs no further steps.
  std::unique_ptr<RunResult> perform(Step step, std::size_t run, std::size_t model,
                                     const TargetBlock& block);
  static void take_parsed(WindowParser* parser, std::size_t model, RunResult& result);
  // Aligns the envelopes that were requested from the device.
  void align(WindowParser* parser, std::size_t model, std::size_t round, Scratch& s,
             RunResult& result) const;
  std::unique_ptr<RunResult> await(Step before, std::size_t run, std::size_t model);
  void hand_over(Step step, std::size_t run, std::size_t model, std::unique_ptr<RunResult> result);
  void request(Step step, std::size_t model, const Progress& p) HMMJIT_REQUIRES(p.mutex);
  void request_cells(std::size_t model, std::span<const std::unique_ptr<RunResult>> of_runs);
  void request_parse(std::size_t model, std::span<const std::unique_ptr<RunResult>> of_runs,
                     std::uint64_t turns);
  void request_envelopes(std::size_t model, std::size_t round,
                         std::span<const std::unique_ptr<RunResult>> of_runs);
  std::uint64_t turns_before(Progress& p, std::size_t run);
  std::span<const std::span<const Residue>> sequences(std::size_t run, const Model& model,
                                                      Scratch& s) const {
    return sequences_of(units_of(runs[run]), strands, targets, model.query.window_length, s);
  }
  // `s` must hold the run's sequences.
  DomainContext context_of(std::size_t model, const RunResult& result, Scratch& s) const {
    Model& m = *models[model];
    return {m.filters,      m.domains(s.times), options, s.sequences,
            result.windows, s.domains,          s.times, verifier};
  }
  void find(std::size_t model, Scratch& s, RunResult& result) const;
  void find(std::size_t run, std::size_t model, Scratch& s, RunResult& result);
  void find_domains(std::size_t model, Scratch& s, RunResult& result) const;
  void commit(std::size_t run, std::size_t model, const TargetBlock& block, Scratch& s,
              std::unique_ptr<RunResult> result);
  void keep(const Run& run, Model& model, Progress& p, const TargetBlock& block, RunResult& result)
      HMMJIT_REQUIRES(p.mutex);

  const Options options;
  DeviceScan* const device;
  search_run::Verifier* const verifier;
  mutable PerThread<Scratch> scratch;
  std::vector<std::unique_ptr<Model>> models;
  std::vector<Progress> progress;
  std::atomic<bool> failed = false;  // a step of a search with a device

  Partitioner partitioner;
  std::uint64_t targets = 0;  // before this block
  std::uint64_t residues = 0;
  // The current block.
  BlockStrands strands;
  std::vector<Piece> pieces;
  std::vector<Unit> units;
  std::vector<Run> runs;
};

void Search::State::cut(const TargetBlock& block) {
  strands.assign(block, reads(true), options.threads);
  pieces.clear();
  units.clear();
  runs.clear();
  for (std::size_t n = 0; n < block.size(); ++n)
    partitioner.cut(targets + n, block.length(n), pieces);
  std::int64_t in_run = kResiduesOfRun;
  for (const Piece& piece : pieces) {
    bool first = true;
    for (const bool bottom : {scans(), !scans()}) {
      if (!reads(bottom)) continue;
      if (scans() ? std::exchange(first, false) : in_run >= kResiduesOfRun) {
        runs.push_back({units.size(), 0});
        in_run = 0;
      }
      units.push_back({piece, bottom});
      ++runs.back().count;
      in_run += piece.last - piece.first + 1;
      residues += static_cast<std::uint64_t>(piece.last - piece.first + 1);
    }
  }
}

std::unique_ptr<Search::State::RunResult> Search::State::filter(std::size_t run, std::size_t model,
                                                                Scratch& s) {
  Model& m = *models[model];
  auto result = std::make_unique<RunResult>();
  const auto residues_of_units = sequences(run, m, s);
  const auto marks = device == nullptr ? nullptr : device->marks(model);
  if (marks != nullptr) {
    s.marked.clear();
    for (std::size_t n = 0; n < s.parts.size(); ++n) marks->append(s.parts[n], n, s.marked);
  }
  result->candidates =
      find_candidates(m.filters, options, residues_of_units, marks == nullptr ? nullptr : &s.marked,
                      s.filters, result->counters, s.times);
  return result;
}

void Search::State::scan(std::size_t model, Scratch& s, RunResult& result,
                         std::span<const int> best) {
  result.windows = find_windows(models[model]->filters, options, s.sequences, result.candidates,
                                best, s.filters, result.counters, s.times);
  result.candidates = {};
}

void Search::State::finish(std::size_t run, std::size_t model, const TargetBlock& block, Scratch& s,
                           std::unique_ptr<RunResult> result) {
  if (!result->windows.empty()) {
    if (!result->progress.found) find(run, model, s, *result);
    find_domains(model, s, *result);
  }
  commit(run, model, block, s, std::move(result));
}

void Search::State::take_step(Step step, std::size_t run, std::size_t model,
                              const TargetBlock& block) {
  if (progress[model].finished[run]) return;
  const FlushToZeroScope flush;
  std::unique_ptr<RunResult> result;
  try {
    result = perform(step, run, model, block);
  } catch (...) {
    if (step != kDomains) hand_over(step, run, model, nullptr);
    throw;
  }
  if (step != kDomains) hand_over(step, run, model, std::move(result));
}

std::unique_ptr<Search::State::RunResult> Search::State::perform(Step step, std::size_t run,
                                                                 std::size_t model,
                                                                 const TargetBlock& block) {
  Scratch& s = scratch.local();
  std::unique_ptr<RunResult> result;
  if (step == kFilter) {
    if (stopped()) return nullptr;
    result = filter(run, model, s);
    if (!result->candidates.empty() &&
        (device->takes_windows(model) || device->parser() != nullptr))
      return result;
    scan(model, s, *result, {});
  } else {
    result = await(static_cast<Step>(step - 1), run, model);
    if (result == nullptr || stopped()) return nullptr;
    sequences(run, *models[model], s);
    if (step == kScan) {
      const auto cells = device->best_cells(model);
      scan(model, s, *result,
           cells == nullptr ? std::span<const int>()
                            : std::span(*cells).subspan(result->first, result->candidates.size()));
      if (!result->windows.empty() && device->parser() != nullptr) return result;
    } else {
      WindowParser* const parser = device->parser();
      if (step == kEnvelopes) {
        take_parsed(parser, model, *result);
        find(run, model, s, *result);
      } else {
        align(parser, model, step - kTrim, s, *result);
      }
      if (step != kDomains && parser != nullptr && options.domain.null2) {
        result->asked = estimate_open(context_of(model, *result, s), result->progress);
        if (result->asked != nullptr) return result;
      }
    }
  }
  finish(run, model, block, s, std::move(result));
  return nullptr;
}

void Search::State::take_parsed(WindowParser* parser, std::size_t model, RunResult& result) {
  const auto parsed = parser == nullptr ? nullptr : parser->parsed(model);
  if (parsed == nullptr) return;
  for (const ParsedWindows& of_model : *parsed) {
    const auto own = std::span(of_model.windows).subspan(result.first, result.windows.size());
    result.parsed.push_back({of_model.emissions, {own.begin(), own.end()}, of_model.kernels});
  }
}

void Search::State::align(WindowParser* parser, std::size_t model, std::size_t round, Scratch& s,
                          RunResult& result) const {
  const auto scored = parser == nullptr ? nullptr : parser->scored(model, round);
  const DomainContext context = context_of(model, result, s);
  if (scored == nullptr) {
    align_open(context, result.progress, nullptr, {}, nullptr);
  } else {
    align_open(context, result.progress, result.asked.get(), scored->runs[result.first],
               scored->kernels);
  }
  result.asked.reset();
}

// A finished run completes all remaining handovers at once: most runs finish in the first step, and
// nhmmscan has a run per sequence.
void Search::State::hand_over(Step step, std::size_t run, std::size_t model,
                              std::unique_ptr<RunResult> result) {
  Progress& p = progress[model];
  const MutexLock lock(p.mutex);
  const std::size_t end = result != nullptr ? step + 1 : kDomains;
  if (result != nullptr) {
    p.handovers[step].runs[run] = std::move(result);
  } else if (p.finished[run].exchange(true)) {
    return;
  }
  // Count all steps before a request, which may run out of memory: other runs wait for the counts.
  std::array<bool, kSteps> complete{};
  for (std::size_t left = step; left < end; ++left) {
    Handover& of = p.handovers[left];
    of.complete = complete[left] = --of.to_come == 0;
    if (of.complete) p.changed.notify_all();
  }
  for (std::size_t left = step; left < end; ++left)
    if (complete[left]) request(static_cast<Step>(left), model, p);
}

// Sends the model's request to the device, after its last run.
void Search::State::request(Step step, std::size_t model, const Progress& p) {
  const auto& of_runs = p.handovers[step].runs;
  switch (step) {
    case kFilter:
      return request_cells(model, of_runs);
    case kScan:
      return request_parse(model, of_runs, p.turns);
    default:
      return request_envelopes(model, step - kEnvelopes, of_runs);
  }
}

std::unique_ptr<Search::State::RunResult> Search::State::await(Step before, std::size_t run,
                                                               std::size_t model) {
  Progress& p = progress[model];
  MutexLock lock(p.mutex);
  Handover& of = p.handovers[before];
  while (!of.complete) lock.wait(p.changed);
  return std::move(of.runs[run]);
}

void Search::State::request_cells(std::size_t model,
                                  std::span<const std::unique_ptr<RunResult>> of_runs) {
  if (!device->takes_windows(model)) return;
  std::vector<std::span<const Residue>> windows;
  Scratch& s = scratch.local();
  for (std::size_t run = 0; run < of_runs.size(); ++run) {
    RunResult* const result = of_runs[run].get();
    if (result == nullptr) continue;
    result->first = windows.size();
    const auto views = views_of(result->candidates, sequences(run, *models[model], s));
    windows.insert(windows.end(), views.begin(), views.end());
  }
  if (!windows.empty()) device->request_cells(model, layout::pack_targets(windows));
}

// Uses the emissions of the first windows, and those of nearly all windows if the model has hits.
void Search::State::request_parse(std::size_t model,
                                  std::span<const std::unique_ptr<RunResult>> of_runs,
                                  std::uint64_t turns) {
  WindowParser* const parser = device->parser();
  if (parser == nullptr) return;
  auto windows = std::make_shared<TargetBlock>();
  std::size_t uses = 0;
  Scratch& s = scratch.local();
  for (std::size_t run = 0; run < of_runs.size(); ++run) {
    RunResult* const result = of_runs[run].get();
    if (result == nullptr) continue;
    ++uses;
    result->first = windows->size();
    const auto units_read = sequences(run, *models[model], s);
    for (const Window& window : result->windows) {
      windows->begin_target("", "", "");
      windows->append(window.part_of(units_read[window.sequence]));
      windows->end_target();
    }
  }
  if (uses == 0) return;
  Emissions& emissions = models[model]->domains(s.times).emissions;
  std::vector seen{emissions.after(turns)};
  if (const auto settled = emissions.settled();
      options.domain.null2 && settled != nullptr && settled != seen[0])
    seen.push_back(settled);
  std::optional<std::uint32_t> trace_seed;
  if (options.domain.reseed) trace_seed = options.domain.seed;
  parser->request(
      model, {models[model]->query.model, std::move(seen), std::move(windows), trace_seed, uses});
}

void Search::State::request_envelopes(std::size_t model, std::size_t round,
                                      std::span<const std::unique_ptr<RunResult>> of_runs) {
  WindowParser* const parser = device->parser();
  if (parser == nullptr) return;
  EnvelopeRequest request{models[model]->query.model, {}};
  for (const std::unique_ptr<RunResult>& result : of_runs) {
    if (result == nullptr) continue;
    result->first = request.runs.size();
    request.runs.push_back(result->asked);
  }
  if (!request.runs.empty()) parser->request(model, round, std::move(request));
}

// The number of turns before `run`, as far as known.
std::uint64_t Search::State::turns_before(Progress& p, std::size_t run) {
  const MutexLock lock(p.mutex);
  std::uint64_t turns = p.turns;
  for (const auto& [other, added] : p.turned)
    if (other >= p.next && other < run) turns += added;
  return turns;
}

void Search::State::find(std::size_t model, Scratch& s, RunResult& result) const {
  FilterCounters counters;
  result.turns_after = result.turns_before;
  result.progress =
      find_envelopes(context_of(model, result, s), result.parsed, result.turns_after, counters);
  if (scans()) result.turns_after = result.turns_before;
  result.forward = counters.forward;
}

void Search::State::find(std::size_t run, std::size_t model, Scratch& s, RunResult& result) {
  Progress& p = progress[model];
  // In nhmmscan, each target begins with the model's own emissions.
  if (!scans()) result.turns_before = turns_before(p, run);
  find(model, s, result);
  if (result.turns_after == result.turns_before) return;
  const MutexLock lock(p.mutex);
  p.turned.emplace_back(run, result.turns_after - result.turns_before);
}

// Aligns the open envelopes.
void Search::State::find_domains(std::size_t model, Scratch& s, RunResult& result) const {
  const DomainContext context = context_of(model, result, s);
  while (!result.progress.open.empty()) align_open(context, result.progress, nullptr, {}, nullptr);
  result.domains = finish_domains(context, result.progress);
  result.progress = {};
}

void Search::State::commit(std::size_t run, std::size_t model, const TargetBlock& block, Scratch& s,
                           std::unique_ptr<RunResult> result) {
  Progress& p = progress[model];
  const auto differ = [&](std::uint64_t turns, std::uint64_t others) {
    Emissions& emissions = models[model]->domains(s.times).emissions;
    return emissions.after(turns) != emissions.after(others);
  };
  MutexLock lock(p.mutex);
  p.waiting[run] = std::move(result);
  if (p.committing) return;
  p.committing = true;
  while (p.next < runs.size() && p.waiting[p.next]) {
    const std::size_t r = p.next;
    std::unique_ptr<RunResult> next = std::move(p.waiting[r]);
    if (!next->windows.empty() && differ(next->turns_before, p.turns)) {
      next->turns_before = p.turns;
      lock.unlock();
      sequences(r, *models[model], s);
      find(model, s, *next);
      find_domains(model, s, *next);
      lock.lock();
    }
    p.turns += next->turns_after - next->turns_before;
    keep(runs[r], *models[model], p, block, *next);
    ++p.next;
  }
  p.committing = false;
}

void Search::State::keep(const Run& run, Model& model, Progress& p, const TargetBlock& block,
                         RunResult& result) {
  FilterCounters& counters = scans() ? p.of_targets.emplace_back() : p.counters;
  counters += result.counters;
  counters.forward += result.forward;
  for (WindowDomain& found : result.domains) {
    const Unit& unit = units[run.first_unit + found.sequence];
    const std::size_t n = unit.piece.target - targets;
    const bool again = !p.hits.empty() && p.hits.back().subject->index == unit.piece.target;
    p.hits.push_back(make_hit(
        again ? p.hits.back().subject : subject_of(block[n], unit.piece.target),
        std::move(found.domain), unit, model.query.window_length, options.keep_alignments));
  }
}

Search::Search(std::vector<Query> queries, const Options& options, DeviceScan* device,
               search_run::Verifier* verifier)
    : state_(make_hidden<State>(std::move(queries), options, device, verifier)) {
  if (device == nullptr) return;
  std::vector<ScanModel> models;
  for (const auto& model : state_->models) {
    const SearchModel& m = *model->query.model;
    // Without the Viterbi filter, windows pass any threshold.
    models.push_back({&m, reference::marking_height(m.bytes, model->filters.ssv),
                      state_->options.F2 < 1 ? model->query.window_length : 0});
  }
  device->use_models(std::move(models), state_->reads(false), state_->reads(true), verifier);
}

Status Search::add(const TargetBlock& block) {
  State& s = *state_;
  s.scratch.reuse();
  s.cut(block);
  for (State::Progress& p : s.progress) {
    const MutexLock lock(p.mutex);
    p.waiting.clear();
    p.waiting.resize(s.runs.size());
    p.next = 0;
    p.turned.clear();
    p.finished = std::vector<std::atomic<bool>>(s.runs.size());
    if (s.device == nullptr) continue;
    for (State::Handover& of : p.handovers) {
      of = {};
      of.runs.resize(s.runs.size());
      of.to_come = s.runs.size();
    }
  }
  const std::size_t models = s.models.size(), runs = s.runs.size();
  const bool device = s.device != nullptr && runs > 0;
  if (device) s.device->begin_block(s.strands.top(), runs);
  Status searched;
  try {
    searched = catch_matrix_too_large([&] {
      if (!device) {
        // In this order, threads reuse cached data.
        for_each_index(s.options.threads, runs * models, [&](std::size_t n) {
          if (!s.stopped()) s.search(n / models, n % models, block);
        });
        return;
      }
      // Threads wait for each other's steps: take them all, even after a failure, when they do
      // nothing.
      std::exception_ptr failure;
      for_each_index(s.options.threads, kSteps * runs * (models + kModelsAhead.back()),
                     [&](std::size_t n) {
                       const std::size_t run = n % runs, at = n / runs / kSteps;
                       const auto step = static_cast<Step>(n / runs % kSteps);
                       if (at < kModelsAhead[step] || at - kModelsAhead[step] >= models) return;
                       try {
                         s.take_step(step, run, at - kModelsAhead[step], block);
                       } catch (...) {
                         if (!s.failed.exchange(true)) failure = std::current_exception();
                       }
                     });
      if (failure != nullptr) std::rethrow_exception(failure);
    });
  } catch (...) {
    // The device must stop using the block and the models.
    if (device) (void)s.device->end_block();
    throw;
  }
  if (device) HMMJIT_TRY(s.device->end_block());
  if (s.verifier != nullptr) HMMJIT_TRY(s.verifier->status());
  HMMJIT_TRY(searched);
  if (s.options.cancelled()) return fail(ErrorCode::kInterrupted, "the search was cancelled");
  s.targets += block.size();
  return {};
}

Times Search::times() const {
  Times times;
  add_times(times, state_->scratch);
  return times;
}

HitList Search::finish(std::size_t query) {
  const FlushToZeroScope flush;
  State& s = *state_;
  State::Progress& p = s.progress[query];
  const MutexLock lock(p.mutex);
  const Query& q = s.models[query]->query;
  p.counters.targets = s.targets;
  p.counters.residues = s.residues;
  auto searched = static_cast<double>(s.residues);
  if (s.options.Z) {
    searched = std::trunc(1000000.0 * *s.options.Z);
    if (s.options.strands == Strands::kBoth) searched *= 2;
  }
  const double raise = log_search_space(searched, q.window_length);
  std::vector<StoredHit> hits;
  for (Hit& hit : std::exchange(p.hits, {})) {
    hit.domain.log_p += raise;
    hits.push_back({std::move(hit), q.report, q.include});
  }
  return finish_hits(std::move(hits), false, p.counters,
                     s.options.column_scores ? q.model.get() : nullptr);
}

Status Search::scan(const TargetBlock& block, Scan& found) {
  HMMJIT_TRY(add(block));
  const FlushToZeroScope flush;
  State& s = *state_;
  const std::size_t first = s.targets - block.size();
  // As in HMMER, the top strand counts even if only the bottom strand is searched.
  const std::uint64_t strands_counted = s.options.strands == Strands::kTop ? 1 : 2;
  const double strands_read = s.options.strands == Strands::kBoth ? 2 : 1;
  found.targets.resize(block.size());
  for (std::size_t n = 0; n < block.size(); ++n) {
    FilterCounters& counters = found.targets[n].counters;
    counters.targets = 1;
    counters.residues = static_cast<std::uint64_t>(block.length(n)) * strands_counted;
  }
  for (std::size_t m = 0; m < s.models.size(); ++m) {
    State::Progress& p = s.progress[m];
    const MutexLock lock(p.mutex);
    for (std::size_t r = 0; r < s.runs.size(); ++r)
      found.targets[s.units[s.runs[r].first_unit].piece.target - first].counters += p.of_targets[r];
    p.of_targets.clear();
    const Query& q = s.models[m]->query;
    const Hmm& hmm = q.model->hmm;
    const auto subject = std::make_shared<const Subject>(Subject{
        found.models++, hmm.name, hmm.accession.value_or(""), hmm.description.value_or(""), hmm.M});
    found.nodes += static_cast<std::uint64_t>(hmm.M);
    for (Hit& hit : std::exchange(p.hits, {})) {
      const std::size_t n = hit.subject->index - first;
      hit.subject = subject;
      hit.domain.log_p += log_search_space(block.length(n) * strands_read, q.window_length);
      found.targets[n].hits.push_back({std::move(hit), q.report, q.include});
    }
  }
  return {};
}

HitList Scan::finish(std::size_t target) {
  const FlushToZeroScope flush;
  Target& of = targets[target];
  for (StoredHit& stored : of.hits)
    stored.hit.domain.log_p += std::log(static_cast<double>(static_cast<float>(models)));
  return finish_hits(std::move(of.hits), true, of.counters, nullptr);
}

}  // namespace hmmjit::nucleotide
