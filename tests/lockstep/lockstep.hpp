// Runs CUDA kernels on the host, for tests: the threads of a block are fibers, switched at every
// warp-wide or block-wide operation, so that shuffles, votes and barriers involve exactly the lanes
// they would on a device. The host compiler compiles the kernel source with HMMJIT_LOCKSTEP, which
// makes kernel_templates/common/intrinsics.cuh use this file.
//
// Stricter than a device: launch throws std::logic_error if a collective is reached by only some of
// the lanes in its mask, if they meet different collectives, or if a kernel writes past its dynamic
// shared memory. Blocks run one after another, so atomics are plain.
//
// Include this header before the kernel source, in one translation unit per kernel instance.
#pragma once

#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <vector>

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __restrict__ __restrict

namespace hmmjit_lockstep {

struct Index {
  unsigned x = 0, y = 0, z = 0;
};

inline constexpr int kWarp = 32;

/// The event that a fiber waits for.
enum class Wait : std::uint32_t { kNone, kShuffle, kBallot, kSyncWarp, kSyncBlock, kDone };

/// A running block. Not reentrant: one launch at a time per host thread.
class Block {
 public:
  Block(unsigned threads, std::size_t shared_bytes, unsigned block, unsigned blocks)
      : threads_(threads),
        block_(block),
        blocks_(blocks),
        bytes_(shared_bytes),
        shared_(kAlignment + shared_bytes + kGuard, kGuardByte) {
    if (threads == 0 || threads % kWarp != 0) throw std::logic_error("lockstep: ragged warp");
    const auto address = reinterpret_cast<std::uintptr_t>(shared_.data());
    dynamic_ = shared_.data() + (kAlignment - address % kAlignment) % kAlignment;
  }

  void run(const std::function<void()>& body) {
    body_ = &body;
    warps_.resize(threads_ / kWarp);
    switches_.resize(threads_);
    for (unsigned t = 0; t < threads_; ++t) {
      ucontext_t& context = switches_[t].context;
      getcontext(&context);
      context.uc_stack.ss_sp = stack(t);
      context.uc_stack.ss_size = kStackBytes;
      context.uc_link = &scheduler_;
      makecontext(&context, &Block::entry, 0);
    }
    current() = this;
    unsigned done = 0;
    while (done < threads_) {
      bool moved = false;
      for (Warp& warp : warps_) moved |= run_warp(warp);
      release_block();
      done = 0;
      bool runnable = false;
      for (const Warp& warp : warps_) {
        for (const Wait wait : warp.wait) {
          done += wait == Wait::kDone;
          runnable |= wait == Wait::kNone;
        }
      }
      if (done < threads_ && !moved && !runnable) {
        throw std::logic_error("lockstep: some lanes never reach the collective others wait in");
      }
    }
    current() = nullptr;
    check_guard();
  }

  static Block*& current() {
    static thread_local Block* block = nullptr;
    return block;
  }

  unsigned thread() const { return running_; }
  unsigned threads() const { return threads_; }
  unsigned block() const { return block_; }
  unsigned blocks() const { return blocks_; }
  unsigned char* dynamic() { return dynamic_; }

  /// `mask`: the participating lanes.
  std::uint32_t collective(Wait kind, std::uint32_t value, std::uint32_t lane, std::uint32_t mask) {
    Warp& warp = warps_[running_ / kWarp];
    const unsigned me = running_ % kWarp;
    warp.value[me] = value;
    warp.lane[me] = lane;
    warp.mask[me] = mask;
    warp.wait[me] = kind;
    yield();
    return warp.result[me];
  }

 private:
  // Not a power of two: the lanes' frames must not share a few sets of the first-level cache.
  static constexpr std::size_t kStackBytes = 64 * 1024 + 304;
  // What the lanes wait for, side by side: the scheduler reads all of them at each step.
  struct Warp {
    std::array<Wait, kWarp> wait{};
    std::array<std::uint32_t, kWarp> value{}, lane{}, mask{}, result{};
  };
  using Registers = std::array<void*, 5>;
  struct Switch {
    ucontext_t context{};
    Registers resume{};
    bool started = false;
  };

  // Kept for the next block: touching fresh pages costs more than most test kernels.
  static char* stack(unsigned thread) {
    static thread_local std::vector<std::unique_ptr<char[]>> stacks;
    while (stacks.size() <= thread) {
      stacks.push_back(std::make_unique_for_overwrite<char[]>(kStackBytes));
    }
    return stacks[thread].get();
  }

  static void entry() {
    Block* block = current();
    (*block->body_)();
    block->warps_[block->running_ / kWarp].wait[block->running_ % kWarp] = Wait::kDone;
    block->leave();
  }

  // swapcontext makes a system call for the signal mask, and setjmp of the C library mangles
  // pointers; after the first entry, fibers are therefore switched by the compiler's own jumps.
  // Sanitizers follow swapcontext only, so under them every switch is a slow one. A fiber that is
  // done returns to uc_link: the thread sanitizer has room for 65,536 calls that have not returned,
  // those of all fibers of a host thread together.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  void leave() {}
  void yield() { swapcontext(&switches_[running_].context, &scheduler_); }
  void enter() { swapcontext(&scheduler_, &switches_[running_].context); }
#else
  // The jump must not stand in the function that sets its target (GCC, "Nonlocal Gotos").
  [[gnu::noinline]] static void jump(Registers& to) { __builtin_longjmp(to.data(), 1); }
  // Continues the warp's next lane at once if it has begun.
  [[gnu::noinline]] void yield() {
    if (__builtin_setjmp(switches_[running_].resume.data()) != 0) return;
    const unsigned warp = running_ / kWarp;
    const unsigned next = next_lane(warps_[warp], turn_ + 1);
    Switch& to = switches_[warp * kWarp + lane_of(next) % kWarp];
    if (next == kWarp || !to.started) jump(scheduler_jump_);
    turn_ = next;
    running_ = warp * kWarp + lane_of(next);
    jump(to.resume);
  }
  void leave() { yield(); }
  [[gnu::noinline]] void enter() {
    if (__builtin_setjmp(scheduler_jump_.data()) != 0) return;
    Switch& to = switches_[running_];
    if (to.started) jump(to.resume);
    to.started = true;
    setcontext(&to.context);
  }
#endif

  // The lane whose turn it is in the current order.
  unsigned lane_of(unsigned turn) const { return backwards_ ? kWarp - 1 - turn : turn; }

  // The first turn from `turn` whose lane can run; kWarp: none.
  unsigned next_lane(const Warp& warp, unsigned turn) const {
    while (turn < kWarp && warp.wait[lane_of(turn)] != Wait::kNone) ++turn;
    return turn;
  }

  // Runs some steps of a warp, so that the warps of a block interleave.
  bool run_warp(Warp& warp) {
    constexpr int kStepsAtOnce = 256;
    const auto first = static_cast<unsigned>(&warp - warps_.data()) * kWarp;
    bool moved = false;
    for (int step = 0; step < kStepsAtOnce; ++step) {
      backwards_ = !backwards_;
      for (turn_ = next_lane(warp, 0); turn_ < kWarp; turn_ = next_lane(warp, turn_)) {
        running_ = first + lane_of(turn_);
        enter();
        moved = true;
      }
      // Every lane now waits or is done. Lanes whose masks name each other continue together.
      bool waiting = false, released = false;
      for (unsigned l = 0; l < kWarp; ++l) {
        if (!waits_for_lanes(warp.wait[l])) continue;
        waiting = true;
        released |= release_lanes(warp, l);
      }
      if (!waiting) return moved;
      if (!released)
        throw std::logic_error("lockstep: lanes wait for others that have left or wait elsewhere");
    }
    return moved;
  }

  static bool waits_for_lanes(Wait wait) {
    return wait != Wait::kNone && wait != Wait::kDone && wait != Wait::kSyncBlock;
  }

  // Completes the collective of lane `l` once all of its lanes have reached it.
  static bool release_lanes(Warp& warp, unsigned l) {
    const Wait kind = warp.wait[l];
    const std::uint32_t mask = warp.mask[l];
    std::uint32_t votes = 0;
    if ((mask >> l & 1u) == 0)
      throw std::logic_error("lockstep: a lane in a collective whose mask does not name it");
    for (unsigned other = 0; other < kWarp; ++other) {
      if ((mask >> other & 1u) == 0) continue;
      if (warp.wait[other] != kind || warp.mask[other] != mask) return false;
      votes |= (warp.value[other] != 0 ? 1u : 0u) << other;
    }
    for (unsigned other = 0; other < kWarp; ++other) {
      if ((mask >> other & 1u) == 0) continue;
      const unsigned from = warp.lane[other] % kWarp;
      if (kind == Wait::kShuffle && (mask >> from & 1u) == 0)
        throw std::logic_error("lockstep: a shuffle from a lane that does not take part");
      warp.result[other] = kind == Wait::kShuffle ? warp.value[from] : votes;
    }
    for (unsigned other = 0; other < kWarp; ++other) {
      if (mask >> other & 1u) warp.wait[other] = Wait::kNone;
    }
    return true;
  }

  void release_block() {
    for (const Warp& warp : warps_) {
      for (const Wait wait : warp.wait) {
        if (wait != Wait::kSyncBlock) return;
      }
    }
    for (Warp& warp : warps_) warp.wait.fill(Wait::kNone);
  }

  void check_guard() const {
    const unsigned char *const begin = dynamic_ + bytes_, *const end =
                                                              shared_.data() + shared_.size();
    if (std::any_of(begin, end, [](unsigned char byte) { return byte != kGuardByte; }))
      throw std::logic_error("lockstep: a kernel wrote past its dynamic shared memory");
  }

  static constexpr std::size_t kAlignment = 128, kGuard = 4096;
  static constexpr unsigned char kGuardByte = 0xa5;
  unsigned threads_, block_, blocks_, running_ = 0, turn_ = 0;
  std::size_t bytes_;
  bool backwards_ =
      false;  // varying the order of lanes exposes code that relies on one without a barrier
  std::vector<unsigned char> shared_;
  unsigned char* dynamic_ = nullptr;
  std::vector<Warp> warps_;
  std::vector<Switch> switches_;
  const std::function<void()>* body_ = nullptr;
  ucontext_t scheduler_{};
  Registers scheduler_jump_{};
};

inline unsigned lane() { return Block::current()->thread() % kWarp; }
inline std::uint32_t shuffle(std::uint32_t value, std::uint32_t from, std::uint32_t mask = ~0u) {
  return Block::current()->collective(Wait::kShuffle, value, from, mask);
}
inline std::uint32_t ballot(bool predicate, std::uint32_t mask = ~0u) {
  return Block::current()->collective(Wait::kBallot, predicate ? 1 : 0, 0, mask);
}
inline void sync_warp(std::uint32_t mask = ~0u) {
  Block::current()->collective(Wait::kSyncWarp, 0, 0, mask);
}
inline void sync_block() { Block::current()->collective(Wait::kSyncBlock, 0, 0, ~0u); }
inline unsigned char* dynamic_shared() { return Block::current()->dynamic(); }

/// Runs `kernel` for every thread of `blocks` blocks.
inline void launch(unsigned blocks, unsigned threads, std::size_t shared_bytes,
                   const std::function<void()>& kernel) {
  for (unsigned b = 0; b < blocks; ++b) Block(threads, shared_bytes, b, blocks).run(kernel);
}

// ---- half precision, bit-exact, through float (which holds every half exactly) ----

inline float half_to_float(std::uint16_t h) {
  const std::uint32_t exponent = (h >> 10) & 31u, mantissa = h & 1023u;
  float magnitude = 0;
  if (exponent == 31) {
    magnitude = mantissa ? __builtin_nanf("") : __builtin_inff();
  } else if (exponent == 0) {
    magnitude = static_cast<float>(mantissa) * 0x1p-24f;
  } else {
    magnitude =
        __builtin_ldexpf(static_cast<float>(1024 + mantissa), static_cast<int>(exponent) - 25);
  }
  return (h & 0x8000u) ? -magnitude : magnitude;
}

/// Non-negative finite values and infinity; rounds to nearest even.
inline std::uint16_t positive_float_to_half(float f) {
  if (f >= 65520.0f) return 0x7c00;
  int exponent = 0;
  if (f >= 0x1p-14f) {
    __builtin_frexpf(f, &exponent);
    exponent -= 1;  // f = 1.x * 2^exponent
  } else {
    exponent = -14;
  }
  const float units = __builtin_rintf(__builtin_ldexpf(f, 10 - exponent));  // of the last place
  auto bits = static_cast<std::uint32_t>(units);
  if (f >= 0x1p-14f) bits += static_cast<std::uint32_t>(exponent + 14) << 10;  // 1024 carries in
  return static_cast<std::uint16_t>(bits);
}

/// max(a + b, +0), as fma.rn.relu.f16 with a multiplier of one; NaN becomes NaN (0x7fff).
inline std::uint16_t add_relu_half(std::uint16_t a, std::uint16_t b) {
  const float sum = half_to_float(a) + half_to_float(b);  // exact: 11-bit operands, 30 binades...
  if (sum != sum) return 0x7fff;
  return sum > 0 ? positive_float_to_half(sum) : std::uint16_t{0};
}

}  // namespace hmmjit_lockstep

#define threadIdx (hmmjit_lockstep::Index{hmmjit_lockstep::Block::current()->thread(), 0, 0})
#define blockIdx (hmmjit_lockstep::Index{hmmjit_lockstep::Block::current()->block(), 0, 0})
#define blockDim (hmmjit_lockstep::Index{hmmjit_lockstep::Block::current()->threads(), 1, 1})
#define gridDim (hmmjit_lockstep::Index{hmmjit_lockstep::Block::current()->blocks(), 1, 1})
