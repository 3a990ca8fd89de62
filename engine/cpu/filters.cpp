#include "cpu/filters.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/aligned.hpp"
#include "core/simd_targets.hpp"
#include "cpu/kernels.hpp"
#include "hwy/targets.h"

namespace hmmjit::cpu {
namespace {

constexpr int kWordMinimum = -32768;
constexpr std::size_t kAlignment = 64;

struct NamedTarget {
  std::string_view name;
  std::int64_t bit;
};
constexpr std::array<NamedTarget, 4> kTargets = {
    {{"AVX3", HWY_AVX3}, {"AVX2", HWY_AVX2}, {"SSE4", HWY_SSE4}, {"NEON", HWY_NEON}}};
constexpr std::string_view kScalar = "SCALAR";

bool runs_here(const NamedTarget& target) {
  return (supported_simd_targets() & target.bit) != 0 && byte_kernels(target.bit) != nullptr;
}

int divide_up(int a, int b) { return (a + b - 1) / b; }

template <typename Profile>
void copy_constants(const Profile& from, Profile& to) {
  to.M = from.M;
  to.Kp = from.Kp;
  to.scale = from.scale;
  to.base = from.base;
}

// Time of one SSV row of a target, in 0.01 ns, to choose the vector width. The latency of the lane
// rotation bounds up to three vectors, the vector ports bound more. Measured with single targets on
// a 3.1 GHz Cascade Lake core and with groups of targets on a 4.3 GHz Zen 5 core.
int ssv_row_time(VectorPorts ports, int lanes, int vectors) {
  struct Times {
    std::array<int, 3> short_rows;
    int vector;
  };
  constexpr Times kIntel[] = {{{187, 148, 170}, 56}, {{161, 122, 146}, 39}, {{76, 98, 131}, 38}};
  constexpr Times kAmd[] = {{{61, 57, 70}, 18}, {{83, 66, 66}, 25}, {{55, 51, 56}, 20}};
  const Times& times = (ports == VectorPorts::kAlikeForAll ? kAmd : kIntel)[lanes == 64   ? 0
                                                                            : lanes == 32 ? 1
                                                                                          : 2];
  return vectors <= 3 ? times.short_rows[vectors - 1] : vectors * times.vector;
}

// The same for one row of the Viterbi filter.
int viterbi_row_time(VectorPorts ports, int lanes, int stripes) {
  if (ports == VectorPorts::kOneForMaxima) return stripes;
  return lanes == 32   ? 500 + 150 * stripes
         : lanes == 16 ? 360 + 140 * stripes
                       : 200 + 145 * stripes;
}

}  // namespace

// Value for `block` of SsvGroup.
constexpr std::size_t kWholeTargets = ~std::size_t{1};

struct FilterScratch::State {
  AlignedArray<std::uint8_t> bytes;
  AlignedArray<std::int16_t> words;
  AlignedArray<std::int8_t> flow[2];             // bytes between SSV tiles, one per row
  std::vector<int> best;                         // SSV's results for a batch
  std::vector<MarkedRows> chunks, marked;        // for a scan
  std::vector<std::span<const Residue>> views;   // chunks, each with the rows before it
};

FilterScratch::FilterScratch() : state_(make_hidden<State>()) {}

VectorPorts vector_ports_here() {
#if HWY_ARCH_X86
  static const bool amd = [] {
    __builtin_cpu_init();
    return __builtin_cpu_is("amd") != 0;
  }();
  if (amd) return VectorPorts::kAlikeForAll;
#endif
  return VectorPorts::kOneForMaxima;
}

std::vector<std::string_view> available_targets() {
  std::vector<std::string_view> names;
  for (const NamedTarget& target : kTargets) {
    if (runs_here(target)) names.push_back(target.name);
  }
  names.push_back(kScalar);
  return names;
}

struct FilterTables::Tables {
  struct Tile {
    int first_node = 0, nodes = 0, vectors = 0;
    std::size_t offset = 0;
    SsvTile kernel = nullptr;
  };

  Tables(const SearchModel& model, std::string_view target, VectorPorts ports);

  /// Largest cells, -128..127, of one target or per block as in SsvGroup. Tiles take whole targets.
  int ssv_best(std::span<const Residue> residues, FilterScratch& scratch) const;
  const std::vector<int>& ssv_best_batch(std::span<const std::span<const Residue>> targets,
                                         std::size_t block, FilterScratch& scratch) const;
  /// Fills FilterScratch::State::marked. `height`: see reference::marking_height().
  void mark_rows(int height, std::span<const std::span<const Residue>> targets,
                 FilterScratch& scratch) const;

  void plan_ssv(const ByteKernels& kernels);
  void plan_msv(const ByteKernels& kernels);
  void plan_viterbi(const WordKernels& kernels);
  void fill_ssv(const ByteProfile& profile);
  void fill_msv(const ByteProfile& profile);
  void fill_viterbi(const WordProfile& profile);
  void add_words(const WordProfile& profile);
  std::size_t row_bytes(const Tile& tile) const {
    return ssv_row_bytes(static_cast<std::size_t>(ssv_lanes),
                         static_cast<std::size_t>(tile.vectors), ssv_gains);
  }
  template <typename T>
  T* at(std::size_t offset) const {
    return reinterpret_cast<T*>(begin + offset);
  }
  std::size_t reserve(std::size_t size) {
    const std::size_t offset = storage_bytes;
    storage_bytes += (size + kAlignment - 1) / kAlignment * kAlignment;
    return offset;
  }

  int M, Kp;
  VectorPorts ports;
  bool scalar = false;
  // The profiles' constants; score arrays are kept only for the scalar target.
  ByteProfile bytes;
  WordProfile words;  // M: 0 until there are any
  BiasModel bias;
  BiasKernel bias_kernel = nullptr;  // null: the reference

  SsvSingle ssv_single = nullptr;  // null: tiles
  SsvGroup ssv_group = nullptr;    // null: tiles
  std::vector<Tile> tiles;         // one for the single kernel
  int ssv_lanes = 0;
  bool ssv_gains = false;

  MsvKernel msv_kernel = nullptr;
  SsvScanKernel ssv_scan_kernel = nullptr;
  int msv_lanes = 0, msv_stripes = 0;
  std::size_t msv_offset = 0;

  ViterbiKernel viterbi_kernel = nullptr;
  ViterbiScanKernel viterbi_scan_kernel = nullptr;
  ViterbiTables viterbi;
  int viterbi_lanes = 0;
  std::size_t match_offset = 0, transitions_offset = 0, deletes_offset = 0, bound_offset = 0;

  AlignedArray<std::uint8_t> storage;
  std::uint8_t* begin = nullptr;  // start of the tables in it
  std::size_t storage_bytes = 0;
};

FilterTables::Tables::Tables(const SearchModel& model, std::string_view target,
                             VectorPorts vector_ports)
    : M(model.bytes.M), Kp(model.bytes.Kp), ports(vector_ports), bias(model.bias) {
  const NamedTarget* chosen = nullptr;
  for (const NamedTarget& candidate : kTargets) {
    if ((target.empty() || target == candidate.name) && runs_here(candidate)) {
      chosen = &candidate;
      break;
    }
  }
  if (chosen == nullptr && !target.empty() && target != kScalar) {
    throw std::invalid_argument("no filters for instruction set " + std::string(target));
  }
  if (chosen == nullptr) {
    scalar = true;
    bytes = model.bytes;
    add_words(model.words);
    return;
  }
  copy_constants(model.bytes, bytes);
  bytes.bias = model.bytes.bias;
  bytes.tbm = model.bytes.tbm;
  bytes.tec = model.bytes.tec;

  const ByteKernels& byte_set = *byte_kernels(chosen->bit);
  plan_ssv(byte_set);
  plan_msv(byte_set);
  plan_viterbi(*word_kernels(chosen->bit));
  // State 0 emits the background: its odds are 1, except in models made elsewhere.
  const float* background = bias.odds[0].data();
  if (std::all_of(background, background + Kp, [](float odds) { return odds == 1.0f; })) {
    bias_kernel = bias_kernels(chosen->bit)->bias;
  }
  begin = storage.ensure_exactly(storage_bytes);
  fill_ssv(model.bytes);
  fill_msv(model.bytes);
  add_words(model.words);
}

void FilterTables::Tables::add_words(const WordProfile& profile) {
  if (words.M > 0 || profile.M == 0) return;
  if (scalar) {
    words = profile;
    return;
  }
  copy_constants(profile, words);
  words.ec = profile.ec;
  words.ej = profile.ej;
  fill_viterbi(profile);
}

// ---- SSV

void FilterTables::Tables::plan_ssv(const ByteKernels& kernels) {
  // The fastest width that holds the whole model in registers, else tiles of the widest.
  const auto for_these_ports = [&](const SsvShape& shape) {
    return shape.lanes != 64 || shape.gains == (ports == VectorPorts::kOneForMaxima);
  };
  int best_time = std::numeric_limits<int>::max();
  Tile whole{.first_node = 0, .nodes = M};
  for (const SsvShape& shape : kernels.ssv) {
    if (shape.lanes == 0 || !for_these_ports(shape)) continue;
    // Wider rows rotate: they need a padding slot between the last node and node 1.
    const int slots = shape.lanes == 16 ? M : M + 1;
    const int vectors = divide_up(slots, shape.lanes);
    if (vectors > shape.max_vectors) continue;
    const int time = ssv_row_time(ports, shape.lanes, vectors);
    if (time >= best_time) continue;
    best_time = time;
    ssv_lanes = shape.lanes;
    ssv_gains = shape.gains;
    ssv_single = shape.single[vectors - 1];
    ssv_group = shape.group[vectors - 1];
    whole.vectors = vectors;
  }
  if (ssv_single != nullptr) {
    whole.offset = reserve(row_bytes(whole) * kSsvCodes);
    tiles.push_back(whole);
    return;
  }
  const SsvShape& shape = *std::ranges::find_if(kernels.ssv, for_these_ports);
  ssv_lanes = shape.lanes;
  ssv_gains = shape.gains;
  const int count = divide_up(M, shape.lanes * shape.max_vectors);
  int first = 0;
  for (int t = 0; t < count; ++t) {
    Tile tile{.first_node = first, .nodes = divide_up(M - first, count - t)};
    // Whole vectors if possible, so that every slot of a tile is a node.
    tile.vectors = divide_up(tile.nodes, shape.lanes);
    tile.nodes = std::min(M - first, tile.vectors * shape.lanes);
    tile.kernel = shape.tile[tile.vectors - 1];
    tile.offset = reserve(row_bytes(tile) * kSsvCodes);
    first += tile.nodes;
    tiles.push_back(tile);
    if (first == M) break;
  }
}

void FilterTables::Tables::fill_ssv(const ByteProfile& profile) {
  const int limit = 127 + profile.bias;
  for (const Tile& tile : tiles) {
    std::int8_t* out = at<std::int8_t>(tile.offset);
    const int Q = tile.vectors;
    std::vector<std::int8_t> row(static_cast<std::size_t>(Q) * ssv_lanes, std::int8_t{127});
    for (int x = 0; x < Kp; ++x) {
      const std::uint8_t* cost =
          profile.cost.data() + static_cast<std::size_t>(x) * M + tile.first_node;
      for (int j = 0; j < tile.nodes; ++j) {
        row[j] = static_cast<std::int8_t>(std::min<int>(cost[j], limit) - profile.bias);
      }
      for (int lane = 0; lane < ssv_lanes; ++lane) {
        for (int q = 0; q < Q; ++q) out[q * ssv_lanes + lane] = row[lane * Q + q];
      }
      if (ssv_gains) {
        for (std::size_t j = 0; j < row.size(); ++j) {
          out[row.size() + j] = static_cast<std::int8_t>(std::max(0, -out[j]));
        }
      }
      out += row_bytes(tile);
    }
  }
}

// ---- MSV

void FilterTables::Tables::plan_msv(const ByteKernels& kernels) {
  int best_time = std::numeric_limits<int>::max();
  for (const MsvShape& shape : kernels.msv) {
    if (shape.lanes == 0) continue;
    const int stripes = divide_up(M, shape.lanes);
    const int time = stripes * (shape.lanes == 64 ? 3 : 2);
    if (time >= best_time) continue;
    best_time = time;
    msv_lanes = shape.lanes;
    msv_stripes = stripes;
    msv_kernel = shape.kernel;
    ssv_scan_kernel = shape.scan;
  }
  msv_offset = reserve(static_cast<std::size_t>(msv_stripes) * msv_lanes * Kp);
}

void FilterTables::Tables::fill_msv(const ByteProfile& profile) {
  std::uint8_t* out = at<std::uint8_t>(msv_offset);
  const int Q = msv_stripes;
  std::vector<std::uint8_t> row(static_cast<std::size_t>(Q) * msv_lanes, std::uint8_t{255});
  for (int x = 0; x < Kp; ++x) {
    std::copy_n(profile.cost.data() + static_cast<std::size_t>(x) * M, M, row.data());
    for (int lane = 0; lane < msv_lanes; ++lane) {
      for (int q = 0; q < Q; ++q) out[q * msv_lanes + lane] = row[lane * Q + q];
    }
    out += row.size();
  }
}

// ---- Viterbi

void FilterTables::Tables::plan_viterbi(const WordKernels& kernels) {
  int best_time = std::numeric_limits<int>::max();
  for (const ViterbiShape& shape : kernels.viterbi) {
    // 512 bits on one port are no faster than 256 on two, and half as many stripes hide less
    // latency.
    const bool slow = shape.lanes == 32 && ports == VectorPorts::kOneForMaxima;
    if (shape.lanes == 0 || slow) continue;
    const int stripes = divide_up(M, shape.lanes);
    const int time = viterbi_row_time(ports, shape.lanes, stripes);
    if (time >= best_time) continue;
    best_time = time;
    viterbi_lanes = shape.lanes;
    viterbi.stripes = stripes;
    viterbi_kernel = shape.kernel;
    viterbi_scan_kernel = shape.scan;
  }
  const std::size_t row = static_cast<std::size_t>(viterbi.stripes) * viterbi_lanes;
  match_offset = reserve(row * Kp * sizeof(std::int16_t));
  transitions_offset = reserve(row * kViterbiWords * sizeof(std::int16_t));
  deletes_offset = reserve(row * kDeleteWords * sizeof(std::int16_t));
  bound_offset = reserve(static_cast<std::size_t>(viterbi_lanes) * sizeof(std::int16_t));
}

// Bounds per node j (from 0) above which paths through delete states can beat B->M at the match
// state in which they end. Sums are ints: without gains on the path, saturation only lowers it to a
// floor that beats nothing.
struct DeleteBounds {
  bool always = false;       // some transition gains: no bound holds
  std::vector<int> returns;  // D(i,j) matters only if it exceeds B - returns[j]
  std::vector<int> matches;  // M(i,j) matters, on paths that kMDM omits, only above B - matches[j]
};
DeleteBounds delete_bounds(const WordProfile& words) {
  constexpr int kNever = -1 << 20;
  const int M = words.M;
  const auto gains = [](const std::vector<std::int16_t>& v) {
    return std::any_of(v.begin(), v.end(), [](std::int16_t word) { return word > 0; });
  };
  DeleteBounds bounds;
  bounds.always = gains(words.md_out) || gains(words.dd_out) || gains(words.dm_in);
  // Index M stays "never": no match state follows the last node.
  bounds.returns.assign(static_cast<std::size_t>(M) + 1, kNever);
  for (int j = M - 2; j >= 0; --j) {
    bounds.returns[j] = std::max(
        {words.dm_in[j + 1] - words.entry[j + 1], words.dd_out[j] + bounds.returns[j + 1], kNever});
  }
  bounds.matches.assign(static_cast<std::size_t>(M), kNever);
  for (int j = 0; j + 2 < M; ++j) {
    bounds.matches[j] = words.md_out[j] + words.dd_out[j + 1] + bounds.returns[j + 2];
    // The sum does not fit into a word: A(A(M,MD),DM) is less than A(M,kMDM), and either must lose.
    if (words.md_out[j] + words.dm_in[j + 2] < kWordMinimum) {
      bounds.matches[j] = std::max(bounds.matches[j], kWordMinimum - words.entry[j + 2]);
    }
  }
  return bounds;
}

void FilterTables::Tables::fill_viterbi(const WordProfile& profile) {
  const int Q = viterbi.stripes;
  const int W = viterbi_lanes;
  const std::size_t row_words = static_cast<std::size_t>(Q) * W;
  // `stride`: words between stripes.
  const auto stripe = [&](const auto& natural, std::int16_t* out, int stride) {
    for (int lane = 0; lane < W; ++lane) {
      for (int q = 0; q < Q; ++q) {
        const int j = lane * Q + q;
        out[q * stride + lane] =
            j < M ? static_cast<std::int16_t>(natural(j)) : std::int16_t{kWordMinimum};
      }
    }
  };
  const auto values = [](const std::int16_t* v) { return [v](int j) { return v[j]; }; };
  std::int16_t* match = at<std::int16_t>(match_offset);
  for (int x = 0; x < Kp; ++x) {
    stripe(values(profile.match.data() + static_cast<std::size_t>(x) * M),
           match + static_cast<std::size_t>(x) * row_words, W);
  }

  std::int16_t* t = at<std::int16_t>(transitions_offset);
  const int t_stride = kViterbiWords * W;
  stripe(values(profile.entry.data()), t + kEntry * W, t_stride);
  stripe(values(profile.mm_in.data()), t + kMM * W, t_stride);
  stripe(values(profile.im_in.data()), t + kIM * W, t_stride);
  stripe(values(profile.mi_out.data()), t + kMI * W, t_stride);
  stripe(values(profile.ii_out.data()), t + kII * W, t_stride);
  const auto through_delete = [&](int j) {
    return j < 2 ? kWordMinimum : std::max(kWordMinimum, profile.md_out[j - 2] + profile.dm_in[j]);
  };
  stripe(through_delete, t + kMDM * W, t_stride);

  const DeleteBounds bounds = delete_bounds(profile);
  const auto bound = [&](int j) { return std::clamp(bounds.matches[j], kWordMinimum, 32767); };
  const auto returns = [&](int j) { return std::clamp(bounds.returns[j], kWordMinimum, 32767); };
  std::int16_t* d = at<std::int16_t>(deletes_offset);
  const int d_stride = kDeleteWords * W;
  stripe(values(profile.dm_in.data()), d + kDM * W, d_stride);
  stripe(values(profile.md_out.data()), d + kMD * W, d_stride);
  stripe(values(profile.dd_out.data()), d + kDD * W, d_stride);
  stripe(bound, d + kDeleteBound * W, d_stride);
  stripe(returns, d + kDeleteReturn * W, d_stride);
  std::int16_t* lane_bound = at<std::int16_t>(bound_offset);
  for (int lane = 0; lane < W; ++lane) {
    int largest = kWordMinimum;
    for (int j = lane * Q; j < std::min(M, (lane + 1) * Q); ++j) {
      largest = std::max(largest, bound(j));
    }
    lane_bound[lane] = static_cast<std::int16_t>(largest);
  }
  viterbi.match = match;
  viterbi.transitions = t;
  viterbi.deletes = d;
  viterbi.lane_bound = lane_bound;
  viterbi.base = profile.base;
  viterbi.ec = profile.ec;
  viterbi.ej = profile.ej;
  viterbi.always_deletes = bounds.always;
}

int FilterTables::Tables::ssv_best(std::span<const Residue> residues,
                                   FilterScratch& scratch) const {
  const std::size_t length = residues.size();
  if (ssv_single != nullptr)
    return ssv_single(at<std::int8_t>(tiles[0].offset), residues.data(), length);
  FilterScratch::State& state = scratch.state();
  std::int8_t* in = state.flow[0].ensure(length + 4);
  std::int8_t* out = state.flow[1].ensure(length + 4);
  std::memset(in, -128, length);
  int best = -128;
  for (const Tile& tile : tiles) {
    best =
        std::max(best, tile.kernel(at<std::int8_t>(tile.offset), residues.data(), length, in, out));
    std::swap(in, out);
  }
  return best;
}

const std::vector<int>& FilterTables::Tables::ssv_best_batch(
    std::span<const std::span<const Residue>> targets, std::size_t block,
    FilterScratch& scratch) const {
  std::size_t blocks = 0;
  for (const auto& target : targets) blocks += ssv_blocks(target.size(), block);
  std::vector<int>& best = scratch.state().best;
  best.resize(std::max(best.size(), blocks));
  if (ssv_group != nullptr) {
    ssv_group(at<std::int8_t>(tiles[0].offset), targets, block, best.data());
  } else {
    for (std::size_t i = 0; i < targets.size(); ++i) best[i] = ssv_best(targets[i], scratch);
  }
  return best;
}

// ---- The filters

FilterTables::FilterTables(const SearchModel& model, std::string_view target, VectorPorts ports)
    : tables_(make_hidden<Tables>(model, target, ports)) {}

void FilterTables::add_words(const WordProfile& words) { tables_->add_words(words); }

reference::SsvResult FilterTables::ssv(std::span<const Residue> residues,
                                       FilterScratch& scratch) const {
  const Tables& t = *tables_;
  if (t.scalar) return reference::ssv_filter(t.bytes, residues);
  const int L = static_cast<int>(residues.size());
  if (!reference::ssv_usable(t.bytes, L)) return {reference::SsvStatus::kNoResult, 0};
  return reference::ssv_decide(t.bytes, t.ssv_best(residues, scratch) + 256, L);
}

void FilterTables::ssv_batch(std::span<const std::span<const Residue>> targets,
                             std::span<reference::SsvResult> results,
                             FilterScratch& scratch) const {
  const Tables& t = *tables_;
  if (t.ssv_group == nullptr) {
    for (std::size_t i = 0; i < targets.size(); ++i) results[i] = ssv(targets[i], scratch);
    return;
  }
  const std::vector<int>& best = t.ssv_best_batch(targets, kWholeTargets, scratch);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const int L = static_cast<int>(targets[i].size());
    results[i] = reference::ssv_usable(t.bytes, L)
                     ? reference::ssv_decide(t.bytes, best[i] + 256, L)
                     : reference::SsvResult{reference::SsvStatus::kNoResult, 0};
  }
}

bool FilterTables::ssv_takes_any_byte() const { return !tables_->scalar; }

float FilterTables::msv_recurrence(std::span<const Residue> residues,
                                   FilterScratch& scratch) const {
  const Tables& t = *tables_;
  if (t.scalar) return reference::msv_recurrence(t.bytes, residues);
  const int L = static_cast<int>(residues.size());
  const MsvParameters parameters = {
      .base = static_cast<std::uint8_t>(t.bytes.base),
      .bias = t.bytes.bias,
      .tec = t.bytes.tec,
      .tjb_tbm = static_cast<std::uint8_t>(t.bytes.tjb(L) + t.bytes.tbm),
  };
  std::uint8_t* row =
      scratch.state().bytes.ensure(static_cast<std::size_t>(t.msv_stripes) * t.msv_lanes);
  const int J =
      t.msv_kernel(t.at<std::uint8_t>(t.msv_offset), t.msv_stripes, parameters, residues, row);
  if (J == kMsvOverflow) return std::numeric_limits<float>::infinity();
  return reference::msv_nats(t.bytes, J, L);
}

float FilterTables::msv_filter(std::span<const Residue> residues, FilterScratch& scratch) const {
  const reference::SsvResult result = ssv(residues, scratch);
  return result.status == reference::SsvStatus::kNoResult ? msv_recurrence(residues, scratch)
                                                          : result.nats;
}

float FilterTables::viterbi_filter(std::span<const Residue> residues,
                                   FilterScratch& scratch) const {
  const Tables& t = *tables_;
  if (t.scalar) return reference::viterbi_filter(t.words, residues);
  const int L = static_cast<int>(residues.size());
  std::int16_t* rows = scratch.state().words.ensure(
      3 * static_cast<std::size_t>(t.viterbi.stripes) * t.viterbi_lanes);
  const int C = t.viterbi_kernel(t.viterbi, t.words.move(L), residues, rows);
  if (C == kViterbiOverflow) return std::numeric_limits<float>::infinity();
  return reference::viterbi_nats(t.words, C, L);
}

namespace {

// Number of rows of a scanned target that share one maximum.
constexpr std::size_t kMarkedRows = 128;

// Exact scan of parts of one target, in order.
class ExactScan {
 public:
  ExactScan(const FilterTables::Tables& tables, const ByteProfile& profile,
            const reference::SsvScan& scan, std::span<const Residue> target, FilterScratch& scratch)
      : t_(tables),
        profile_(profile),
        scan_(scan),
        target_(target),
        order_(tables.M, reference::kSsvScanLanes),
        row_bytes_(static_cast<std::size_t>(tables.msv_stripes) * tables.msv_lanes),
        row_(scratch.state().bytes.ensure(row_bytes_)) {
    std::memset(row_, 0, row_bytes_);
  }

  /// Scans residues [first, last). Between two calls' parts, no cell reaches the threshold.
  template <typename Found>
  void run(std::size_t first, std::size_t last, const Found& found) {
    const std::size_t warm = first - std::min(first, static_cast<std::size_t>(t_.M));
    if (warm > at_) {
      at_ = warm;
      std::memset(row_, 0, row_bytes_);
    }
    while (at_ < last) {
      at_ =
          t_.ssv_scan_kernel(t_.at<std::uint8_t>(t_.msv_offset), t_.msv_stripes,
                             static_cast<std::uint8_t>(scan_.begin), t_.bytes.bias,
                             static_cast<std::uint8_t>(scan_.threshold), target_, at_, last, row_);
      if (at_ == last) return;
      const int node = best_node();
      const reference::Diagonal diagonal = reference::ssv_diagonal(
          profile_, scan_, target_, static_cast<int>(at_) + 1, node, row_[slot(node)]);
      found(diagonal);
      at_ = std::max(at_ + 1, static_cast<std::size_t>(reference::last_row(diagonal)));
      std::memset(row_, 0, row_bytes_);
    }
  }

 private:
  std::size_t slot(int node) const {
    const int index = node - 1;
    return static_cast<std::size_t>(index % t_.msv_stripes * t_.msv_lanes + index / t_.msv_stripes);
  }
  int best_node() const {
    std::uint8_t largest = 0;
    for (std::size_t j = 0; j < row_bytes_; ++j) largest = std::max(largest, row_[j]);
    int best = 0;
    for (std::size_t j = 0; j < row_bytes_; ++j) {
      if (row_[j] != largest) continue;
      const int k = static_cast<int>(j) % t_.msv_lanes * t_.msv_stripes +
                    static_cast<int>(j) / t_.msv_lanes + 1;
      if (k <= t_.M && (best == 0 || order_.before(k, best))) best = k;
    }
    return best;
  }

  const FilterTables::Tables& t_;
  const ByteProfile& profile_;
  const reference::SsvScan& scan_;
  std::span<const Residue> target_;
  reference::StripedOrder order_;
  std::size_t row_bytes_;
  std::uint8_t* row_;
  std::size_t at_ = 0;  // next row
};

}  // namespace

void mark(const MarkedRows& rows, std::vector<MarkedRows>& marked) {
  if (!marked.empty() && marked.back().target == rows.target && rows.first <= marked.back().last) {
    marked.back().last = std::max(marked.back().last, rows.last);
  } else {
    marked.push_back(rows);
  }
}

// Marks blocks that may have a cell above the threshold, by SSV without clearing rows (clearing
// only lowers cells). Cuts targets into chunks and interleaves them. A chunk also reads the M rows
// before it, on which its cells depend.
void FilterTables::Tables::mark_rows(int height, std::span<const std::span<const Residue>> targets,
                                     FilterScratch& scratch) const {
  FilterScratch::State& s = scratch.state();
  s.marked.clear();
  if (height == 0) {
    for (std::size_t n = 0; n < targets.size(); ++n) s.marked.push_back({n, 0, targets[n].size()});
    return;
  }
  s.chunks.clear();
  s.views.clear();
  const bool tiled = ssv_group == nullptr;
  const auto nodes = static_cast<std::size_t>(M);
  const std::size_t rows = std::max<std::size_t>(512, (tiled ? 4 : 32) * nodes);
  const std::size_t block = tiled ? 2 * (rows + nodes) : kMarkedRows;
  for (std::size_t n = 0; n < targets.size(); ++n) {
    for (std::size_t at = 0; at < targets[n].size(); at += rows) {
      s.chunks.push_back({n, at, std::min(at + rows, targets[n].size())});
      const std::size_t before = std::min(at, nodes);
      s.views.push_back(targets[n].subspan(at - before, s.chunks.back().last - at + before));
    }
  }
  const int* best = ssv_best_batch(s.views, block, scratch).data();
  for (std::size_t c = 0; c < s.chunks.size(); ++c) {
    const MarkedRows& chunk = s.chunks[c];
    const std::size_t length = s.views[c].size(), start = chunk.last - length;
    for (std::size_t b = 0; b < ssv_blocks(length, block); ++b) {
      const int value = *best++ + 128;
      if (value < height) continue;
      std::size_t first = start + b * block, last = first + block + length % 2;
      if (b > 0) first += length % 2;
      // After a possible overflow, kernels with gains may lose a pair of cells (byte_kernels.cpp)
      // in the next M rows.
      if (value >= 256 - 2 * bytes.bias) last += nodes;
      first = std::max(first, chunk.first);
      last = std::min(last, chunk.last);
      if (first < last) mark({chunk.target, first, last}, s.marked);
    }
  }
}

void FilterTables::ssv_scan(const ByteProfile& profile, const reference::SsvScan& scan,
                            std::span<const std::span<const Residue>> targets,
                            FilterScratch& scratch, std::vector<FoundDiagonal>& found,
                            const std::vector<MarkedRows>* marked) const {
  const Tables& t = *tables_;
  if (t.scalar) {
    for (std::size_t n = 0; n < targets.size(); ++n)
      for (const auto& diagonal : reference::ssv_scan(profile, scan, targets[n]))
        found.push_back({n, diagonal});
    return;
  }
  if (marked == nullptr) {
    t.mark_rows(reference::marking_height(profile, scan), targets, scratch);
    marked = &scratch.state().marked;
  }
  std::optional<ExactScan> exact;
  std::size_t current = targets.size();
  for (const MarkedRows& rows : *marked) {
    if (std::exchange(current, rows.target) != rows.target)
      exact.emplace(t, profile, scan, targets[rows.target], scratch);
    exact->run(rows.first, rows.last, [&](const reference::Diagonal& diagonal) {
      found.push_back({rows.target, diagonal});
    });
  }
}

void FilterTables::viterbi_scan(const WordProfile& words, int move, int threshold,
                                std::span<const Residue> residues, FilterScratch& scratch,
                                std::vector<reference::Diagonal>& records) const {
  const Tables& t = *tables_;
  if (t.scalar) {
    records = reference::viterbi_scan(words, move, threshold, residues);
    return;
  }
  records.clear();
  std::int16_t* rows = scratch.state().words.ensure(
      3 * static_cast<std::size_t>(t.viterbi.stripes) * t.viterbi_lanes);
  t.viterbi_scan_kernel(t.viterbi, move, threshold, t.M, residues, rows, records);
  const reference::StripedOrder order(t.M, reference::kViterbiScanLanes);
  std::sort(records.begin(), records.end(),
            [&](const reference::Diagonal& a, const reference::Diagonal& b) {
              return a.first != b.first ? a.first < b.first
                                        : order.before(a.last_node, b.last_node);
            });
}

float FilterTables::bias_filter(std::span<const Residue> residues) const {
  return reference::bias_filter(tables_->bias, residues);
}

void library_logs(float* values, std::size_t count) {
  std::transform(values, values + count, values, [](float value) {
    return static_cast<float>(std::log(static_cast<double>(value)));
  });
}

float bias_score(const BiasModel& model, const BiasTarget& target, float sum, float last,
                 float ends) {
  const auto length = static_cast<float>(static_cast<int>(target.residues.size()));
  sum += static_cast<float>(std::log(static_cast<double>(last)));
  sum += static_cast<float>(std::log(static_cast<double>(ends)));
  const float score = (sum + length * std::log(target.p1)) + std::log(1.0f - target.p1);
  return std::isfinite(score) ? score : reference::bias_filter(model, target.residues);
}

void FilterTables::bias_filter_batch(std::span<const std::span<const Residue>> targets,
                                     std::span<float> scores) const {
  const Tables& t = *tables_;
  std::vector<BiasTarget> batch;
  batch.reserve(targets.size());
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const std::span<const Residue> residues = targets[i];
    if (t.bias_kernel == nullptr || residues.empty()) {
      scores[i] = bias_filter(residues);
    } else {
      batch.push_back(
          {residues, null_p1(static_cast<int>(residues.size())), static_cast<std::uint32_t>(i)});
    }
  }
  std::sort(batch.begin(), batch.end(), [](const BiasTarget& a, const BiasTarget& b) {
    return a.residues.size() > b.residues.size();
  });
  // A vector step takes as long as two residues in the scalar filter. So a target for which the
  // other lanes would idle during more than half of its length is scored alone.
  constexpr std::size_t kMostLanes = 16;
  std::size_t rest = 0;  // residues of the targets after the longest
  for (const BiasTarget& target : batch) rest += target.residues.size();
  std::size_t alone = 0;
  for (; alone < batch.size(); ++alone) {
    const std::size_t longest = batch[alone].residues.size();
    rest -= longest;
    const std::size_t next = alone + 1 < batch.size() ? batch[alone + 1].residues.size() : 0;
    if (longest <= 2 * std::max(next, rest / kMostLanes)) break;
    scores[batch[alone].index] = bias_filter(batch[alone].residues);
  }
  if (alone == batch.size()) return;
  t.bias_kernel(t.bias, std::span(batch).subspan(alone), scores.data());
}

}  // namespace hmmjit::cpu
