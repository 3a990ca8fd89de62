#include "gpu/client.hpp"

#include <utility>

namespace hmmjit::gpu {

void ClientCalls::attach(Client& client, WorkBoard& board, const FilterLimits& limits) {
  // Notify with the lock held: once the waiting thread has the lock, it may destroy this object.
  const auto end = [this](const ClientAccess* access) {
    delete access;
    const MutexLock lock(mutex_);
    in_use_ = false;
    unused_.notify_all();
  };
  ClientUse use(new ClientAccess{client, board, limits}, end);
  const MutexLock lock(mutex_);
  in_use_ = true;
  current_ = std::move(use);
}

void ClientCalls::detach() {
  ClientUse own;
  MutexLock lock(mutex_);
  own.swap(current_);
  lock.unlock();
  own.reset();
  lock.lock();
  while (in_use_) lock.wait(unused_);
}

}  // namespace hmmjit::gpu
