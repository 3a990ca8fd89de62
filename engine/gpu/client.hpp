// The interface between a search and its devices.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "core/error.hpp"
#include "core/mutex.hpp"
#include "gpu/cascade.hpp"
#include "gpu/handover_policy.hpp"
#include "work/work_board.hpp"

namespace hmmjit::gpu {

/// A device's result for a pair that it has claimed, or a part of it.
struct Delivery {
  Claim claim;  ///< none with a part
  TargetsPtr targets;
  FilteredBlock found;
};

/// A search, as its devices see it. Called on any thread of the engine, and within attach(),
/// detach() and backfill(), but never with a lock of GpuFilters held.
class Client {
 public:
  /// The device has done its part of these pairs. `early`: some of it, and they stay claimed; what
  /// has been delivered early is not repeated.
  virtual void deliver(ModelId model, std::vector<Delivery> pairs, bool early) = 0;
  /// Returns how many targets a chain with these kernels must return with their scores. `blocks`:
  /// the number of blocks it has claimed.
  virtual SampleRequest sample(std::uint64_t model, const std::vector<UsedKernel>& kernels,
                               std::size_t blocks) {
    (void)model, (void)kernels, (void)blocks;
    return {};
  }
  /// Targets are waiting for the domain stage, which the client's threads may take: see
  /// GpuFilters::backfill.
  virtual void targets_wait() {}
  /// Nothing more will be claimed. `ends`: the search must end with this error, because the user
  /// requested a GPU and none could be started, or because the host is out of memory. Otherwise all
  /// pairs will fall back to the CPU.
  virtual void stopped(const Error& reason, bool ends) = 0;
  /// The load of the client's threads; see handover_policy.hpp. By default they are busy.
  virtual HostLoad load() const { return {.waiting = std::numeric_limits<std::size_t>::max()}; }

 protected:
  ~Client() = default;
};

/// A client, its board and its filters, as lanes use them.
struct ClientAccess {
  Client& client;
  WorkBoard& board;
  FilterLimits limits;
};
/// Keeps the client, its board and its blocks alive. Whoever holds blocks of the client must
/// release them before this. Null if no client is attached.
using ClientUse = std::shared_ptr<const ClientAccess>;

/// Thread-safe.
class ClientCalls {
 public:
  void attach(Client& client, WorkBoard& board, const FilterLimits& limits);
  /// Lets no further use begin; returns when the last one has ended.
  void detach();
  ClientUse use() const {
    const MutexLock lock(mutex_);
    return current_;
  }

 private:
  mutable Mutex mutex_;
  std::condition_variable unused_;
  ClientUse current_ HMMJIT_GUARDED_BY(mutex_);
  bool in_use_ HMMJIT_GUARDED_BY(mutex_) = false;
};

}  // namespace hmmjit::gpu
