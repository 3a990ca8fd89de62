#include "search/database_builder.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/at_end.hpp"
#include "core/threads.hpp"

namespace hmmjit {
namespace {

constexpr std::size_t kBlockResidues = std::size_t{1} << 21;

// The queue between the threads that parse inputs and the one that writes. Each input is parsed by
// one thread, several inputs at once; the writer takes their blocks in the order of the inputs.
// Idle threads read ahead of the parsers.
class ParsedInputs {
 public:
  explicit ParsedInputs(std::span<const DatabaseInput> inputs)
      : inputs_(inputs), states_(inputs.size()) {}

  /// Parses inputs until none is left or close() has been called.
  void parse() {
    std::unique_lock lock(mutex_);
    try {
      while (!closed_ && writing_ < states_.size()) {
        if (next_ < states_.size() && (inputs_[next_].beside_others || next_ == writing_)) {
          const std::size_t n = next_++;
          lock.unlock();
          Status status = parse(n);
          lock.lock();
          states_[n].status = std::move(status);
          states_[n].ended = true;
          states_[n].source.reset();
          change();
        } else {
          read_ahead_or_wait(lock);
        }
      }
    } catch (const std::bad_alloc&) {
      if (!lock.owns_lock()) lock.lock();
      out_of_memory_ = closed_ = true;
      change();
    }
  }

  /// The next block of all; nullopt after the last. Fails where an input does, after the blocks
  /// before the failure.
  Result<std::optional<TargetBlock>> pop() {
    std::unique_lock lock(mutex_);
    while (writing_ < states_.size()) {
      if (out_of_memory_) return fail(ErrorCode::kResources, "out of memory");
      State& state = states_[writing_];
      if (!state.blocks.empty()) {
        TargetBlock block = std::move(state.blocks.front());
        state.blocks.pop_front();
        waiting_ -= block.bytes();
        change();
        return block;
      }
      if (state.ended) {
        if (!state.status) return std::unexpected(state.status.error());
        ++writing_;
        change();
      } else {
        read_ahead_or_wait(lock);
      }
    }
    return std::nullopt;
  }

  /// Ends the threads that parse.
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    change();
  }

 private:
  struct State {
    std::shared_ptr<TargetSource> source;  // while it is parsed
    std::deque<TargetBlock> blocks;
    bool ended = false;
    Status status;
  };

  Status parse(std::size_t n) {
    HMMJIT_ASSIGN(const std::shared_ptr<TargetSource> source, inputs_[n].open());
    {
      const std::lock_guard lock(mutex_);
      states_[n].source = source;
      change();
    }
    for (;;) {
      TargetBlock block;
      HMMJIT_ASSIGN(const bool more, source->next(block, kBlockResidues));
      if (!more || !push(n, std::move(block))) return {};
    }
  }

  // False after close(). The input that is being written always has room for a few blocks, and
  // those after it share the rest of the memory, so that no thread waits for ever.
  bool push(std::size_t n, TargetBlock block) {
    constexpr std::size_t kLongest = 4;
    constexpr std::uint64_t kMostWaiting = std::uint64_t{1} << 27;
    std::unique_lock lock(mutex_);
    State& state = states_[n];
    changed_.wait(lock, [&] {
      return closed_ || (n == writing_ ? state.blocks.size() < kLongest : waiting_ < kMostWaiting);
    });
    if (closed_) return false;
    waiting_ += block.bytes();
    state.blocks.push_back(std::move(block));
    change();
    return true;
  }

  // Reads a piece of an input ahead, or waits until something has changed.
  void read_ahead_or_wait(std::unique_lock<std::mutex>& lock) {
    const std::uint64_t seen = changes_;
    std::vector<std::shared_ptr<TargetSource>> sources;
    for (std::size_t n = writing_; n < next_; ++n)
      if (states_[n].source) sources.push_back(states_[n].source);
    lock.unlock();
    bool room = false;
    for (const auto& source : sources) room = source->read_ahead() || room;
    sources.clear();
    lock.lock();
    if (!room) changed_.wait(lock, [&] { return closed_ || changes_ != seen; });
  }

  void change() {
    ++changes_;
    changed_.notify_all();
  }

  const std::span<const DatabaseInput> inputs_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<State> states_;
  std::size_t next_ = 0;       // the first input that no thread parses yet
  std::size_t writing_ = 0;    // the input whose blocks are being written
  std::uint64_t waiting_ = 0;  // bytes of all blocks that wait
  std::uint64_t changes_ = 0;
  bool closed_ = false, out_of_memory_ = false;
};

Status write_in_turn(std::span<const DatabaseInput> inputs, DatabaseWriter& writer) {
  for (const DatabaseInput& input : inputs) {
    HMMJIT_ASSIGN(const std::unique_ptr<TargetSource> source, input.open());
    for (;;) {
      TargetBlock block;
      HMMJIT_ASSIGN(const bool more, source->next(block, kBlockResidues));
      if (!more) break;
      HMMJIT_TRY(writer.add(block));
    }
  }
  return {};
}

Status write_with_threads(std::span<const DatabaseInput> inputs, int parsers,
                          DatabaseWriter& writer) {
  ParsedInputs parsed(inputs);
  std::vector<std::jthread> threads;
  // However this function ends, the parsers must not wait for room.
  const AtEnd close{[&parsed] { parsed.close(); }};
  try {
    for (int t = 0; t < parsers; ++t) threads.emplace_back([&parsed] { parsed.parse(); });
  } catch (const std::system_error&) {
    if (threads.empty()) return write_in_turn(inputs, writer);
  }
  for (;;) {
    HMMJIT_ASSIGN(const std::optional<TargetBlock> block, parsed.pop());
    if (!block) return {};
    HMMJIT_TRY(writer.add(*block));
  }
}

}  // namespace

Result<DatabaseSummary> build_database(std::span<const DatabaseInput> inputs,
                                       const Alphabet& alphabet, const std::string& output,
                                       const std::string& program, int threads) {
  HMMJIT_ASSIGN(DatabaseWriter writer, DatabaseWriter::create(output, alphabet));
  // An input keeps at most two threads busy: one that parses it and one that reads ahead. The
  // writer is no faster.
  const auto useful = static_cast<int>(std::min<std::size_t>(2 * inputs.size(), 1024));
  const int cores = threads > 0 ? threads : available_cores();
  const int parsers = std::min(cores - 1, useful);
  HMMJIT_TRY(parsers > 0 ? write_with_threads(inputs, parsers, writer)
                         : write_in_turn(inputs, writer));
  std::string about = "program " + program + "\n";
  for (const DatabaseInput& input : inputs) {
    std::string name = input.name;
    std::ranges::replace(name, '\n', ' ');
    about += "source " + name + "\n";
  }
  return writer.finish(about);
}

}  // namespace hmmjit
