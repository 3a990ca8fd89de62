// Speed of the CPU filters on one core: billions of dynamic-programming cells (model nodes times
// residues, without padding) per second, per instruction set and model.
//
//   filters_bench [--isa NAME]... TARGETS MODEL...
//
// SSV runs over all targets, MSV over a sample. Viterbi and bias run over the 2 % of targets with
// the highest MSV scores, as in a search.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <string>
#include <vector>

#include "cpu/filters.hpp"
#include "io/hmm_file.hpp"
#include "io/sequence_file.hpp"
#include "model/profile.hpp"
#include "model/targets.hpp"

namespace {

using namespace hmmjit;

double now() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// CPU seconds of f over all targets, in pieces of about a millisecond; takes each piece's best of
// several repeats, because other work on a shared machine only adds time.
template <typename F>
double best_seconds_of_pieces(const std::vector<std::span<const Residue>>& targets, F&& f) {
  constexpr std::size_t kPiece = 500;
  std::vector<double> best(targets.size() / kPiece + 1, 1e30);
  const double start = now();
  for (int repeat = 0; repeat < 5 || (now() - start < 0.05 && repeat < 1000); ++repeat) {
    for (std::size_t i = 0; i < targets.size(); i += kPiece) {
      const double begin = now();
      f(std::span(targets).subspan(i, std::min(kPiece, targets.size() - i)));
      best[i / kPiece] = std::min(best[i / kPiece], now() - begin);
    }
  }
  double sum = 0;
  for (const double seconds : best) sum += seconds < 1e30 ? seconds : 0;
  return sum;
}

template <typename F>
double best_seconds(const std::vector<std::span<const Residue>>& targets, F&& f) {
  return best_seconds_of_pieces(targets, [&](auto piece) {
    for (const auto& target : piece) f(target);
  });
}

double residues_of(const std::vector<std::span<const Residue>>& targets) {
  double sum = 0;
  for (const auto& target : targets) sum += static_cast<double>(target.size());
  return sum;
}

volatile float g_sink;

int fail_with(const Error& error) {
  fmt::print(stderr, "filters_bench: {}\n", error.to_string());
  return static_cast<int>(error.code);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> isas, files;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--isa" && i + 1 < argc) {
      isas.emplace_back(argv[++i]);
    } else {
      files.push_back(argument);
    }
  }
  if (files.size() < 2) {
    fmt::print(stderr, "usage: filters_bench [--isa NAME]... TARGETS MODEL...\n");
    return static_cast<int>(ErrorCode::kUsage);
  }
  if (isas.empty()) {
    for (const auto name : cpu::available_targets()) {
      if (name != "SCALAR") isas.emplace_back(name);
    }
  }
  auto reader = SequenceReader::open(files[0], {.alphabet = amino_alphabet()});
  if (!reader) return fail_with(reader.error());
  TargetBlock block;
  const auto read = reader->read_block(block, 8'000'000);
  if (!read) return fail_with(read.error());
  std::vector<std::span<const Residue>> targets;
  for (std::size_t i = 0; i < block.size(); ++i) targets.push_back(block[i].residues);
  fmt::print("# {} targets, {} residues\n", targets.size(), block.residue_count());
  fmt::print("{:<24} {:>5} {:<5} {:>8} {:>8} {:>8} {:>8} {:>8} {:>9} {:>8}\n", "model", "M", "isa",
             "SSV", "MSV", "Viterbi", "bias", "batched", "tables", "no SSV");
  fmt::print("{:<24} {:>5} {:<5} {:>8} {:>8} {:>8} {:>8} {:>8} {:>9} {:>8}\n", "", "", "",
             "Gcell/s", "Gcell/s", "Gcell/s", "ns/res", "ns/res", "us", "%");

  for (std::size_t f = 1; f < files.size(); ++f) {
    auto models = HmmReader::open(files[f]);
    if (!models) return fail_with(models.error());
    auto hmm = models->next();
    if (!hmm) return fail_with(hmm.error());
    if (!*hmm) continue;
    const auto model = make_search_model(std::move(**hmm));
    const double M = model->hmm.M;
    for (const std::string& isa : isas) {
      cpu::FilterScratch scratch;
      const double table_seconds =
          best_seconds({targets[0]}, [&](auto) { cpu::FilterTables t(*model, isa); });
      const cpu::FilterTables tables(*model, isa);

      std::vector<std::pair<float, std::size_t>> scores;
      int undecided = 0;
      for (std::size_t i = 0; i < targets.size(); ++i) {
        const auto ssv = tables.ssv(targets[i], scratch);
        undecided += ssv.status == reference::SsvStatus::kNoResult;
        scores.emplace_back(tables.msv_filter(targets[i], scratch) -
                                null_score(static_cast<int>(targets[i].size())),
                            i);
      }
      std::sort(scores.rbegin(), scores.rend());
      std::vector<std::span<const Residue>> top, sample;
      for (std::size_t i = 0; i < scores.size() / 50; ++i) top.push_back(targets[scores[i].second]);
      for (std::size_t i = 0; i < targets.size(); i += 20) sample.push_back(targets[i]);

      // As a search calls it.
      std::vector<reference::SsvResult> decided(targets.size());
      const double ssv = best_seconds_of_pieces(targets, [&](auto piece) {
        tables.ssv_batch(piece, std::span(decided).first(piece.size()), scratch);
        g_sink = decided[0].nats;
      });
      const double msv = best_seconds(
          sample, [&](auto target) { g_sink = tables.msv_recurrence(target, scratch); });
      const double viterbi =
          best_seconds(top, [&](auto target) { g_sink = tables.viterbi_filter(target, scratch); });
      const double bias =
          best_seconds(top, [&](auto target) { g_sink = tables.bias_filter(target); });
      // As a search calls it: a few dozen survivors per task.
      constexpr std::size_t kBatch = 64;
      std::vector<float> results(kBatch);
      std::size_t at = 0;
      const double batched = best_seconds(top, [&](auto) {
        if (at % kBatch == 0) {
          const std::size_t n = std::min(kBatch, top.size() - at);
          tables.bias_filter_batch(std::span(top).subspan(at, n), std::span(results).first(n));
          g_sink = results[0];
        }
        at = (at + 1) % top.size();
      });
      fmt::print(
          "{:<24} {:>5} {:<5} {:>8.1f} {:>8.2f} {:>8.2f} {:>8.2f} {:>8.2f} {:>9.1f} {:>8.2f}\n",
          model->hmm.name.substr(0, 24), model->hmm.M, isa, M * residues_of(targets) / ssv * 1e-9,
          M * residues_of(sample) / msv * 1e-9, M * residues_of(top) / viterbi * 1e-9,
          bias / residues_of(top) * 1e9, batched / residues_of(top) * 1e9, table_seconds * 1e6,
          100.0 * undecided / static_cast<double>(targets.size()));
    }
  }
  return 0;
}
