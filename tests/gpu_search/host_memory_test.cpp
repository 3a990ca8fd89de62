// A search on a device whose host runs out of memory anywhere ends with an error that says so. No
// target is lost or found twice, and the process lives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "gpu/active_models.hpp"
#include "gpu/delivery.hpp"
#include "gpu/domain_queue.hpp"
#include "host_kernels.hpp"
#include "search_fixture.hpp"
#include "support/random_profiles.hpp"

namespace {

// Allocations that count down to those that fail, of which there are `failing`. The driver's own do
// not count: a real one returns an error.
std::atomic<bool> armed{false};
std::atomic<long> before_failure{0}, failing{0}, failed{0};

void* allocate(std::size_t bytes, std::size_t alignment) {
  if (armed && !hmmjit::tests::FakeDriver::inside() && --before_failure < 0 && --failing >= 0) {
    ++failed;
    throw std::bad_alloc();
  }
  bytes = (bytes / alignment + 1) * alignment;
  void* memory = alignment > alignof(std::max_align_t) ? std::aligned_alloc(alignment, bytes)
                                                       : std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

// For callers that ask for null if there is no memory.
void* allocate_or_null(std::size_t bytes) noexcept {
  try {
    return allocate(bytes, alignof(std::max_align_t));
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

// Not inlined: the compiler would take it for memory of malloc's that new has given.
[[gnu::noinline]] void release(void* memory) noexcept { std::free(memory); }

}  // namespace

void* operator new(std::size_t bytes) { return allocate(bytes, alignof(std::max_align_t)); }
void* operator new[](std::size_t bytes) { return allocate(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return allocate_or_null(bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return allocate_or_null(bytes);
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { release(memory); }
void operator delete[](void* memory) noexcept { release(memory); }
void operator delete(void* memory, std::size_t) noexcept { release(memory); }
void operator delete[](void* memory, std::size_t) noexcept { release(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { release(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { release(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { release(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { release(memory); }

namespace hmmjit::tests {
namespace {

struct Outcome {
  std::string text, error;
  long failed = 0, allocations = 0;
};

// With `count` allocations failing after the first `nth`.
Outcome search_without_memory(const SearchData& data, long nth, long count, int devices,
                              bool wait_for_device) {
  FakeDriver driver({*plan::find_device("H200"), *plan::find_device("H200")});
  driver.on_launch = run_on_host;
  gpu::Settings settings = fake_settings(driver, devices);
  settings.wait_for_device = wait_for_device;
  settings.launch_timeout = 20;
  before_failure = nth;
  failing = count;
  failed = 0;
  Outcome out;
  armed = true;
  try {
    gpu::GpuFilters gpu(settings);
    SearchOutcome found = run_search(data, &gpu, small_blocks(2));
    armed = false;
    out.text = found.text;
    out.error = found.error;
  } catch (const std::bad_alloc&) {  // before the search began: as an error, for the caller
    armed = false;
    out.error = "memory";
  }
  out.failed = failed;
  out.allocations = nth - before_failure;
  return out;
}

TEST(HostMemory, RunsOutAnywhereAndNothingIsLostOrFoundTwice) {
  const SearchData data = make_search_data(29, 3, 60, 120);
  const std::string expected = run_search(data, nullptr, small_blocks(2)).text;
  const Outcome undisturbed = search_without_memory(data, 1L << 60, 0, 1, true);
  ASSERT_EQ(undisturbed.error, "");
  ASSERT_EQ(undisturbed.text, expected);
  ASSERT_GT(undisturbed.allocations, 1000);
  test_support::Random random(5);
  constexpr int kTrials = 240;
  int ended = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    const long nth = undisturbed.allocations * trial / kTrials + random.integer(0, 20);
    const long count = trial % 3 == 0 ? 1 : random.integer(2, 60);
    const Outcome out =
        search_without_memory(data, nth, count, trial % 2 + 1, random.integer(0, 3) > 0);
    SCOPED_TRACE(testing::Message()
                 << count << " allocations after " << nth << ", trial " << trial);
    if (out.failed == 0) continue;
    if (out.error.empty()) {  // a lack that some thread can do without, which few can
      EXPECT_EQ(out.text, expected);
    } else {
      ++ended;
      EXPECT_THAT(out.error, testing::HasSubstr("memory"));
      EXPECT_TRUE(expected.starts_with(out.text)) << out.text;
    }
  }
  EXPECT_GT(ended, kTrials / 20);
}

enum class Event { kOutOfMemory, kLeftToHost };
struct StarvingClient final : gpu::Client {
  void deliver(ModelId, std::vector<gpu::Delivery> pairs, bool) override {
    for (gpu::Delivery& pair : pairs) pair.claim.finish();
  }
  void stopped(const Error&, bool ends) override {
    if (ends) events.push_back(Event::kOutOfMemory);
  }
  std::vector<Event> events;
};

// Delivered results cannot be taken back, nor can the host compute them once more.
TEST(HostMemory, AChainThatIsLostHalfwayEndsTheSearchBeforeTheHostHasItsPairs) {
  for (const bool begun : {false, true}) {
    StarvingClient client;
    client.events.reserve(8);
    WorkBoard board([&](ModelId, BlockId) { client.events.push_back(Event::kLeftToHost); });
    const auto targets = std::make_shared<const TargetBlock>();
    board.add_block(1);
    board.open(7, 1, targets);
    const SegmentId segment = board.make_segment({1});
    gpu::ClientCalls calls;
    calls.attach(client, board, {});
    auto chain = std::make_shared<gpu::FilteredChain>();
    chain->use = calls.use();
    chain->claims = board.claim(7, segment);
    chain->model = std::make_shared<gpu::ActiveModel>(7, nullptr);
    chain->blocks.resize(1);
    if (begun) chain->blocks[0].open.emplace_back();
    gpu::deliver_open(*chain);
    chain.reset();
    calls.detach();
    std::vector<Event> expected{Event::kLeftToHost};
    if (begun) expected.insert(expected.begin(), Event::kOutOfMemory);
    EXPECT_EQ(client.events, expected);
  }
}

}  // namespace
}  // namespace hmmjit::tests
