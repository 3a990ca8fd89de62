#include "lockstep/lockstep.hpp"

#include <ucontext.h>

#include <algorithm>
#include <array>
#include <memory>
#include <stdexcept>
#include <vector>

// swapcontext makes a system call for the signal mask, which takes longer than most steps of a
// kernel. Sanitizers follow it only.
#if defined(__x86_64__) && !defined(HMMJIT_SWAPCONTEXT)
// Pushes the registers that a function keeps, stores the stack pointer, and goes on where `to` was
// stored. Not inline assembly: a call ends the red zone.
extern "C" void hmmjit_lockstep_switch(void*** from, void** to);
asm(R"(.pushsection .text
hmmjit_lockstep_switch:
  push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15
  mov %rsp, (%rdi)
  mov %rsi, %rsp
  pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx
  ret
.popsection)");

namespace {
class Fiber {
 public:
  void begin_at(void (*entry)(), char* stack, std::size_t bytes, Fiber&) {
    constexpr int kRegisters = 6;
    const auto end = reinterpret_cast<std::uintptr_t>(stack + bytes) / 16 * 16;
    stack_ = reinterpret_cast<void**>(end) - kRegisters - 2;  // 2: entry, its return address
    stack_[kRegisters] = reinterpret_cast<void*>(entry);
  }
  void go_to(Fiber& to) { hmmjit_lockstep_switch(&stack_, to.stack_); }
  void end(Fiber& next) { go_to(next); }

 private:
  void** stack_ = nullptr;
};
}  // namespace
#else
namespace {
class Fiber {
 public:
  void begin_at(void (*entry)(), char* stack, std::size_t bytes, Fiber& next) {
    getcontext(&context_);
    context_.uc_stack.ss_sp = stack;
    context_.uc_stack.ss_size = bytes;
    context_.uc_link = &next.context_;
    makecontext(&context_, entry, 0);
  }
  void go_to(Fiber& to) { swapcontext(&context_, &to.context_); }
  // Returns to uc_link: the thread sanitizer has room for 65,536 calls that have not returned,
  // those of all fibers of a host thread together.
  void end(Fiber&) {}

 private:
  ucontext_t context_{};
};
}  // namespace
#endif

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
    fibers_.resize(threads_);
    for (unsigned t = 0; t < threads_; ++t)
      fibers_[t].begin_at(&Block::entry, stack(t), kStackBytes, scheduler_);
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
    block->fibers_[block->running_].end(block->scheduler_);
  }

  // Continues the warp's next lane at once.
  void yield() {
    Fiber& from = fibers_[running_];
    const unsigned warp = running_ / kWarp;
    turn_ = next_lane(warps_[warp], turn_ + 1);
    if (turn_ == kWarp) return from.go_to(scheduler_);
    running_ = warp * kWarp + lane_of(turn_);
    from.go_to(fibers_[running_]);
  }

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
        scheduler_.go_to(fibers_[running_]);
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
  std::vector<Fiber> fibers_;
  void (*kernel_)(const void*) = nullptr;
  const void* of_kernel_ = nullptr;
  Fiber scheduler_;
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
