#include "search/pressed_models.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "core/read_only_file.hpp"
#include "core/threads.hpp"
#include "io/hmm_file.hpp"
#include "io/pressed_filters.hpp"
#include "model/residue_copies.hpp"
#include "model/score_statistics.hpp"
#include "reference/filters.hpp"

namespace hmmjit {
namespace {

using Stripe [[gnu::vector_size(PressedFilter::kLanes)]] = std::uint8_t;

Stripe larger(Stripe a, Stripe b) { return a > b ? a : b; }
Stripe smaller(Stripe a, Stripe b) { return a < b ? a : b; }
Stripe all(int value) { return Stripe{} + static_cast<std::uint8_t>(value); }
bool any_above(Stripe a, Stripe b) {
  const auto found = std::bit_cast<std::array<std::uint64_t, 2>>(a > b);
  return (found[0] | found[1]) != 0;
}
int maximum(Stripe a) {
  int most = 0;
  for (int lane = 0; lane < PressedFilter::kLanes; ++lane) most = std::max<int>(most, a[lane]);
  return most;
}

// Moves the last stripe by one node.
Stripe moved(Stripe last) {
  return __builtin_shufflevector(Stripe{}, last, 0, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27,
                                 28, 29, 30);
}

// reference::msv_recurrence on the stored stripes. `row`: scratch.
float striped_msv(const PressedFilter& filter, std::span<const Residue> residues,
                  std::vector<Stripe>& row) {
  const ByteProfile& bytes = filter.bytes;
  const auto L = static_cast<int>(residues.size());
  const int move = static_cast<std::uint8_t>(bytes.tjb(L) + bytes.tbm);
  const int overflow = 255 - bytes.bias;
  // Up to this cell, a row changes neither B nor the outcome.
  const Stripe usual = all(std::min(bytes.base + bytes.tec, overflow - 1));
  const Stripe bias = all(bytes.bias), highest = all(overflow);
  row.assign(filter.stripes, Stripe{});
  int J = 0;
  Stripe B = all(std::max(0, bytes.base - move));
  Stripe best{};
  const std::size_t row_bytes = filter.stripes * sizeof(Stripe);
  for (const Residue x : residues) {
    const char* cost = filter.cost.data() + x * row_bytes;
    Stripe E{};
    Stripe previous = moved(row.back());
    for (Stripe& cell : row) {
      Stripe price;
      std::memcpy(&price, cost, sizeof price);
      cost += sizeof price;
      const Stripe raised = smaller(larger(previous, B), highest) + bias;
      previous = cell;
      cell = larger(raised, price) - price;
      E = larger(E, cell);
    }
    best = larger(best, E);
    if (!any_above(E, usual)) continue;
    const int most = maximum(E);
    if (most >= overflow) return std::numeric_limits<float>::infinity();
    J = std::max(J, most - bytes.tec);
    B = all(std::max(0, std::max(bytes.base, J) - move));
  }
  return reference::msv_nats(bytes, std::max(J, maximum(best) - bytes.tec), L);
}

// reference::msv_filter. SSV computes two rows at a time, with 128 added to its cells, which do not
// exceed a byte before the score overflows.
float striped_filter(const PressedFilter& filter, std::span<const Residue> residues,
                     std::vector<Stripe>& row) {
  const auto L = static_cast<int>(residues.size());
  if (!reference::ssv_usable(filter.bytes, L)) return striped_msv(filter, residues, row);
  const std::size_t Q = filter.stripes;
  const auto costs_of = [&](int x) {
    return filter.cost.data() + static_cast<std::size_t>(x) * Q * sizeof(Stripe);
  };
  const auto advanced = [bias = all(filter.bytes.bias)](Stripe cell, const char* costs,
                                                        std::size_t q) {
    Stripe cost;
    std::memcpy(&cost, costs + q * sizeof cost, sizeof cost);
    return larger(cell + bias, cost) - cost;
  };
  row.assign(Q, Stripe{});
  Stripe best{};
  for (std::size_t i = 0; i < residues.size(); i += 2) {
    const char* const first = costs_of(residues[i]);
    // A gap costs so much that all cells become 0.
    const char* const second =
        costs_of(i + 1 < residues.size() ? residues[i + 1] : filter.alphabet->gap());
    Stripe previous = moved(row[Q - 1]), above = moved(advanced(row[Q - 2], first, Q - 1));
    for (std::size_t q = 0; q < Q; ++q) {
      const Stripe cell = advanced(previous, first, q);
      previous = row[q];
      row[q] = advanced(above, second, q);
      best = larger(best, larger(cell, row[q]));
      above = cell;
    }
  }
  const reference::SsvResult result = reference::ssv_decide(filter.bytes, maximum(best) + 128, L);
  return result.status == reference::SsvStatus::kNoResult ? striped_msv(filter, residues, row)
                                                          : result.nats;
}

// Nanoseconds for each node: one thread reads a model in 100, and all set it up in 300; this filter
// takes 0.025 a residue, on one thread. Of the models, 2 % pass by chance for each sequence, and
// are set up nevertheless.
bool pays(const TargetBlock& sequences, int threads) {
  const double failing = std::pow(0.98, static_cast<double>(sequences.size()));
  return 0.025 * static_cast<double>(sequences.residue_count()) <
         failing * (100 + 300.0 / std::max(1, threads));
}

// A model by its record in F.h3f.
struct Place {
  std::string name;
  int M;
  float mu, lambda;
  std::uint64_t begin, end;  // in F.h3m
};

bool is_same(const Place& place, const Hmm& hmm) {
  return place.name == hmm.name && place.M == hmm.M && place.mu == hmm.calibration.msv_mu &&
         place.lambda == hmm.calibration.msv_lambda;
}

Result<std::optional<Query>> read_model(const std::string& file, const Place& place) {
  HMMJIT_ASSIGN(std::unique_ptr<ByteSource> range, open_file_range(file, place.begin, place.end));
  HMMJIT_ASSIGN(HmmReader reader, HmmReader::open(std::move(range)));
  HMMJIT_ASSIGN(std::optional<Hmm> hmm, reader.next());
  if (!hmm || !is_same(place, *hmm) || reader.offset() != place.end - place.begin)
    return fail(ErrorCode::kInput,
                fmt::format("model {} differs from that of the .h3f file", place.name), file,
                "press the database again with hmmpress -f");
  return *std::move(hmm);
}

}  // namespace

Result<std::optional<SelectedModels>> filter_pressed(const std::string& path,
                                                     const TargetBlock& sequences,
                                                     const SearchOptions& options) {
  const double F1 = options.filters.F1;
  if (F1 >= 1 || !pays(sequences, options.threads)) return std::nullopt;
  const std::string models = path + ".h3m";
  HMMJIT_ASSIGN(HmmReader reader, HmmReader::open(path));
  if (reader.name() != models || reader.compression() != Compression::kNone) return std::nullopt;
  HMMJIT_ASSIGN(const std::optional<Hmm> first, reader.next());
  if (!first) return std::nullopt;
  HMMJIT_ASSIGN(const ReadOnlyFile file, ReadOnlyFile::open(models));
  HMMJIT_ASSIGN(PressedFilterReader filters, PressedFilterReader::open(path));

  const FlushToZeroScope flush;
  CoreClock clock;
  ResidueCopies copies;
  struct Target {
    std::span<const Residue> residues;
    float null;
  };
  std::vector<Target> targets;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    HMMJIT_ASSIGN(const auto residues, copies.of(sequences, i, *first->alphabet));
    if (!residues.empty())
      targets.push_back({residues, null_score(static_cast<int>(residues.size()))});
  }
  SelectedModels out;
  std::vector<std::size_t>& indices = out.indices.emplace();
  std::vector<Place> places;
  std::vector<Stripe> row;
  Place last{};  // of the last record
  std::uint64_t nodes_failed = 0;
  for (bool passed = false;; ++out.models) {
    const auto read = filters.next();
    if (!read) return std::nullopt;
    last.end = *read ? (*read)->offset : file.size();
    if (out.models > 0 && last.end <= last.begin) return std::nullopt;
    if (passed) places.push_back(last);
    if (!*read) break;
    const PressedFilter& filter = **read;
    if (filter.alphabet != first->alphabet || !(filter.lambda > 0)) return std::nullopt;
    last = {filter.name, filter.bytes.M, filter.mu, filter.lambda, filter.offset, 0};
    if (out.models == 0 && !(is_same(last, *first) && last.begin == 0)) return std::nullopt;
    out.nodes += static_cast<std::uint64_t>(filter.bytes.M);
    const PValueGate gate(filter.mu, filter.lambda, F1);
    passed = std::ranges::any_of(targets, [&](const Target& target) {
      return !gate.rejects(
          nats_to_bits(striped_filter(filter, target.residues, row) - target.null));
    });
    if (passed) indices.push_back(out.models);
    if (!passed) nodes_failed += static_cast<std::uint64_t>(filter.bytes.M);
  }
  // Otherwise records are missing at the end.
  if (out.models == 0 || !read_model(models, last)) return std::nullopt;
  out.times.msv = clock.lap();
  // The cells of the others are counted when they are searched.
  out.times.msv_cells = nodes_failed * sequences.residue_count();
  out.source = [models, places = std::move(places),
                next = std::size_t{0}]() mutable -> Result<std::optional<Query>> {
    if (next == places.size()) return std::nullopt;
    return read_model(models, places[next++]);
  };
  return out;
}

}  // namespace hmmjit
