// Access to the owner of the running search, which must not go while it is in use.
#pragma once

#include <condition_variable>
#include <utility>

#include "core/mutex.hpp"
#include "gpu/client.hpp"

namespace hmmjit::gpu {

class ClientCalls;

/// Keeps the client, its board and its blocks alive: ClientCalls::detach waits until no such object
/// is left. A holder of the client's blocks holds one of these and releases it last. Empty where no
/// client is attached.
class ClientUse {
 public:
  ClientUse() = default;
  ClientUse(const ClientUse& other);
  ClientUse(ClientUse&& other) noexcept : calls_(std::exchange(other.calls_, nullptr)) {}
  ClientUse& operator=(ClientUse other) noexcept {
    std::swap(calls_, other.calls_);
    return *this;
  }
  ~ClientUse();
  explicit operator bool() const { return calls_ != nullptr; }
  Client& client() const;
  WorkBoard& board() const;
  const FilterLimits& limits() const;

 private:
  friend class ClientCalls;
  explicit ClientUse(ClientCalls& calls) : calls_(&calls) {}
  ClientCalls* calls_ = nullptr;
};

/// Thread-safe.
class ClientCalls {
 public:
  void attach(Client& client, WorkBoard& board, const FilterLimits& limits);
  /// Lets no further use begin; returns when the last one has ended.
  void detach();
  ClientUse use();

 private:
  friend class ClientUse;
  void add();
  void remove();

  Mutex mutex_;
  std::condition_variable unused_;
  bool attached_ HMMJIT_GUARDED_BY(mutex_) = false;
  int uses_ HMMJIT_GUARDED_BY(mutex_) = 0;
  // Written while there is no use, read by those who hold one.
  Client* client_ = nullptr;
  WorkBoard* board_ = nullptr;
  FilterLimits limits_;
};

}  // namespace hmmjit::gpu
