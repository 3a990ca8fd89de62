#include "gpu/client_calls.hpp"

namespace hmmjit::gpu {

ClientUse::ClientUse(const ClientUse& other) : calls_(other.calls_) {
  if (calls_ != nullptr) calls_->add();
}

ClientUse::~ClientUse() {
  if (calls_ != nullptr) calls_->remove();
}

Client& ClientUse::client() const { return *calls_->client_; }
WorkBoard& ClientUse::board() const { return *calls_->board_; }
const FilterLimits& ClientUse::limits() const { return calls_->limits_; }

void ClientCalls::attach(Client& client, WorkBoard& board, const FilterLimits& limits) {
  const MutexLock lock(mutex_);
  client_ = &client;
  board_ = &board;
  limits_ = limits;
  attached_ = true;
}

void ClientCalls::detach() {
  MutexLock lock(mutex_);
  attached_ = false;
  while (uses_ > 0) lock.wait(unused_);
}

ClientUse ClientCalls::use() {
  const MutexLock lock(mutex_);
  if (!attached_) return {};
  ++uses_;
  return ClientUse(*this);
}

void ClientCalls::add() {
  const MutexLock lock(mutex_);
  ++uses_;
}

// Notified with the lock held: the waiting thread may destroy this object once it has the lock.
void ClientCalls::remove() {
  const MutexLock lock(mutex_);
  if (--uses_ == 0) unused_.notify_all();
}

}  // namespace hmmjit::gpu
