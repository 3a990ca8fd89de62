#include "core/cancellation.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cerrno>
#include <csignal>
#include <system_error>
#include <thread>

#include "core/threads.hpp"

namespace hmmjit {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

TEST(Cancellation, WakesWhoeverWaitsForAnEvent) {
  const Event never;
  Cancellation root;
  const Cancellation inner(&root), limited(&inner, Clock::now() + 1h);
  std::thread canceller([&] {
    std::this_thread::sleep_for(10ms);
    root.cancel();
  });
  for (const Cancellation* each : {&limited, &inner, static_cast<const Cancellation*>(&root)})
    EXPECT_FALSE(Cancellation::wait(never, each));
  canceller.join();
  EXPECT_TRUE(limited.cancelled());
}

TEST(Cancellation, FromASignalHandler) {
  static Cancellation* cancellation;
  Cancellation here;
  cancellation = &here;
  const auto before = std::signal(SIGUSR1, [](int) { cancellation->cancel(); });
  const pthread_t waiting = ::pthread_self();
  std::thread sender([&] {
    std::this_thread::sleep_for(10ms);
    ::pthread_kill(waiting, SIGUSR1);
  });
  EXPECT_FALSE(Cancellation::wait(Event(), &here));
  sender.join();
  std::signal(SIGUSR1, before);
}

TEST(Cancellation, AtItsTimeAndNotBefore) {
  const Clock::time_point deadline = Clock::now() + 100ms;
  CoreClock used;
  const Cancellation late(nullptr, Clock::now() + 1h), early(&late, deadline), first(&early);
  EXPECT_FALSE(first.cancelled());
  EXPECT_FALSE(Cancellation::wait(Event(), &first));
  EXPECT_GE(Clock::now(), deadline);
  EXPECT_LT(used.lap(), 0.01) << "core-seconds: whoever waits sleeps";
  EXPECT_FALSE(late.cancelled());
}

TEST(Cancellation, AnEventEndsTheWait) {
  const Event event;
  std::thread other([&] {
    std::this_thread::sleep_for(10ms);
    event.happen();
  });
  const Cancellation none;
  EXPECT_TRUE(Cancellation::wait(event, &none));
  EXPECT_TRUE(Cancellation::wait(event, nullptr)) << "again";
  other.join();
}

TEST(Cancellation, WithoutADescriptorThereIsNone) {
  // The undefined-behaviour sanitizer checks the first object of a type by means of a pipe.
  const std::system_error first(EMFILE, std::generic_category(), "eventfd");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  EXPECT_THROW(Event(), std::system_error);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

}  // namespace
}  // namespace hmmjit
