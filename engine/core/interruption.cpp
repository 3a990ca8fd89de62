#include "core/interruption.hpp"

#include <signal.h>
#include <unistd.h>

#include <atomic>

namespace hmmjit {
namespace {

// g_holds counts the existing holds; it is kInterrupted once the process is ending.
constexpr int kInterrupted = -1;
std::atomic<int> g_holds{0};
std::atomic<int> g_put_off{0};  // the postponed signal
static_assert(std::atomic<int>::is_always_lock_free);

}  // namespace

InterruptionHold::InterruptionHold() noexcept {
  int holds = g_holds;
  do {
    while (holds == kInterrupted) {  // the thread in the handler will end the process
      ::pause();
      holds = g_holds;
    }
  } while (!g_holds.compare_exchange_weak(holds, holds + 1));
}

InterruptionHold::~InterruptionHold() {
  if (for_good_) return;
  if (--g_holds > 0) return;
  if (const int signal = g_put_off.exchange(0)) ::raise(signal);
}

bool interrupt(int signal) noexcept {
  int holds = 0;
  if (g_holds.compare_exchange_strong(holds, kInterrupted)) return true;
  if (holds == kInterrupted) return false;
  g_put_off = signal;
  // The last hold may have ended before it could see the signal.
  holds = 0;
  return g_holds.compare_exchange_strong(holds, kInterrupted);
}

}  // namespace hmmjit
