#include "lockstep/lockstep.hpp"

#include <ucontext.h>

#include <algorithm>
#include <array>
#include <memory>
#include <stdexcept>
#include <vector>

namespace hmmjit_lockstep {
namespace {

constexpr int kWarp = 32;

/// The event that a fiber waits for.
enum class Wait : std::uint32_t { kNone, kShuffle, kBallot, kSyncWarp, kSyncBlock, kDone };

/// A running block.
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

  void run(void (*kernel)(const void*), const void* of_kernel) {
    kernel_ = kernel;
    of_kernel_ = of_kernel;
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
    block->kernel_(block->of_kernel_);
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
  void (*kernel_)(const void*) = nullptr;
  const void* of_kernel_ = nullptr;
  ucontext_t scheduler_{};
  Registers scheduler_jump_{};
};

}  // namespace

unsigned thread_index() { return Block::current()->thread(); }
unsigned block_threads() { return Block::current()->threads(); }
unsigned block_index() { return Block::current()->block(); }
unsigned grid_blocks() { return Block::current()->blocks(); }
unsigned lane() { return Block::current()->thread() % kWarp; }
unsigned char* dynamic_shared() { return Block::current()->dynamic(); }

std::uint32_t shuffle(std::uint32_t value, std::uint32_t from, std::uint32_t mask) {
  return Block::current()->collective(Wait::kShuffle, value, from, mask);
}
std::uint32_t ballot(bool predicate, std::uint32_t mask) {
  return Block::current()->collective(Wait::kBallot, predicate ? 1 : 0, 0, mask);
}
void sync_warp(std::uint32_t mask) { Block::current()->collective(Wait::kSyncWarp, 0, 0, mask); }
void sync_block() { Block::current()->collective(Wait::kSyncBlock, 0, 0, ~0u); }

void launch(unsigned blocks, unsigned threads, std::size_t shared_bytes,
            void (*kernel)(const void*), const void* of_kernel) {
  for (unsigned b = 0; b < blocks; ++b)
    Block(threads, shared_bytes, b, blocks).run(kernel, of_kernel);
}

}  // namespace hmmjit_lockstep
