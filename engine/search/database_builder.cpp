#include "search/database_builder.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <new>
#include <optional>
#include <thread>
#include <utility>

namespace hmmjit {
namespace {

// Blocks on their way from the thread that parses to the one that writes.
class BlockQueue {
 public:
  /// False when nobody wants more.
  bool push(TargetBlock block) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return blocks_.size() < kLongest || closed_; });
    if (closed_) return false;
    blocks_.push_back(std::move(block));
    changed_.notify_all();
    return true;
  }
  /// nullopt when it has been closed and emptied.
  std::optional<TargetBlock> pop() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !blocks_.empty() || closed_; });
    if (blocks_.empty()) return std::nullopt;
    TargetBlock block = std::move(blocks_.front());
    blocks_.pop_front();
    changed_.notify_all();
    return block;
  }
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

 private:
  static constexpr std::size_t kLongest = 4;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<TargetBlock> blocks_;
  bool closed_ = false;
};

// Parses every input in turn into `queue`.
Status read_all(std::span<const DatabaseInput> inputs, BlockQueue& queue) {
  constexpr std::size_t kBlockResidues = std::size_t{1} << 21;
  for (const DatabaseInput& input : inputs) {
    HMMJIT_ASSIGN(const std::unique_ptr<TargetSource> source, input.open());
    for (;;) {
      TargetBlock block;
      HMMJIT_ASSIGN(const bool more, source->next(block, kBlockResidues));
      if (!more) break;
      if (!queue.push(std::move(block))) return {};
    }
  }
  return {};
}

}  // namespace

Result<DatabaseSummary> build_database(std::span<const DatabaseInput> inputs,
                                       const Alphabet& alphabet, const std::string& output,
                                       const std::string& program) {
  HMMJIT_ASSIGN(DatabaseWriter writer, DatabaseWriter::create(output, alphabet));
  BlockQueue queue;
  Status read;
  {
    const std::jthread parser([&] {
      try {
        read = read_all(inputs, queue);
      } catch (const std::bad_alloc&) {
        read = fail(ErrorCode::kResources, "out of memory");
      }
      queue.close();
    });
    // Whatever ends this block early, the parser must not wait for room in the queue.
    struct Close {
      BlockQueue& queue;
      ~Close() { queue.close(); }
    } const close{queue};
    while (auto block = queue.pop()) {
      if (const Status added = writer.add(*block); !added) return std::unexpected(added.error());
    }
  }
  HMMJIT_TRY(read);
  std::string about = "program " + program + "\n";
  for (const DatabaseInput& input : inputs) {
    std::string name = input.name;
    std::ranges::replace(name, '\n', ' ');
    about += "source " + name + "\n";
  }
  return writer.finish(about);
}

}  // namespace hmmjit
