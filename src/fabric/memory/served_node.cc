#include "fabric/memory/served_node.h"

#include <cassert>
#include <chrono>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace farside::fabric::memory {
namespace {

// How often the node looks whether a victim is still. Most are at once; one whose process was stopped is not
// for long.
constexpr auto kLook = std::chrono::microseconds(500);
constexpr size_t kMostAsked = 1 << 16;  // by one kGoneClients

}  // namespace

ServedNode::ServedNode(std::span<std::byte> region, StripeTable& stripes, RegionId id, const Clock* clock,
                       std::unique_ptr<Medium> medium)
    : region_id_(id),
      clock_(clock != nullptr ? *clock : steady_clock_),
      region_(region),
      stripes_(stripes),
      stuck_(stripes),
      memory_(region, stripes, own_hold_, nullptr),
      medium_(std::move(medium)),
      cpu_memory_(region, stripes, clock_, waits_end_, stuck_, own_holds_),
      handler_memory_(cpu_memory_, medium_.get()) {
  own_holds_.Add(own_hold_);
}

std::unique_ptr<ThreadMemory> ServedNode::NewThreadMemory() {
  return std::make_unique<ThreadMemory>(region_, stripes_, clock_, waits_end_, stuck_, own_holds_);
}

size_t ServedNode::FreeStrays(const std::vector<bool>& clients) {
  stuck_.Forget();
  return memory_.FreeStrays(clients, own_holds_);
}

void ServedNode::StopWaiting() { waits_end_.store(true, std::memory_order_relaxed); }

ServedNode::~ServedNode() {
  {
    const std::scoped_lock lock(mutex_);
    assert(clients_.empty() && "the servers of a node must be gone before it");
    closing_ = true;
  }
  wake_.notify_all();
  if (fencer_.joinable()) fencer_.join();
}

Result<std::string> ServedNode::GoneClients(std::string_view request) const {
  if (request.size() % sizeof(uint32_t) != 0 || request.size() > kMostAsked * sizeof(uint32_t))
    return Error(ErrorCode::kInvalidArgument, "kGoneClients: the request is not a list of client ids");
  std::string gone(request.size() / sizeof(uint32_t), '\0');
  const std::scoped_lock lock(mutex_);
  for (size_t i = 0; i < gone.size(); ++i) {
    uint32_t id = 0;
    std::memcpy(&id, request.data() + i * sizeof id, sizeof id);
    gone[i] = clients_.contains(static_cast<ClientId>(id)) ? '\0' : '\1';
  }
  return gone;
}

Result<std::string> ServedNode::Call(CallId call, ClientId caller, std::string_view request) {
  if (call == kGoneClients) return GoneClients(request);
  const std::scoped_lock lock(cpu_);
  return handler_memory_.Handle(calls_, call, caller, request);
}

Status ServedNode::Admit(ClientId id, std::shared_ptr<ServedClient> client) {
  const std::scoped_lock lock(mutex_);
  if (id == ClientId::kNone || departed_.contains(id) ||
      !clients_.try_emplace(id, Entry{std::move(client)}).second) {
    return Error(ErrorCode::kAlreadyExists,
                 fmt::format("client id {} is taken, or was used lately; try another", Number(id)));
  }
  return OkStatus();
}

void ServedNode::Depart(ClientId id) {
  const std::scoped_lock lock(mutex_);
  if (clients_.erase(id) == 0) return;
  departed_.insert(id);
  departed_order_.push_back(id);
  if (departed_order_.size() <= kRemembered) return;
  departed_.erase(departed_order_.front());
  departed_order_.pop_front();
}

size_t ServedNode::clients() const {
  const std::scoped_lock lock(mutex_);
  return clients_.size();
}

uint64_t ServedNode::fences() const {
  const std::scoped_lock lock(mutex_);
  return fences_;
}

void ServedNode::Fence(ClientId victim, std::weak_ptr<const void> asker, std::function<void()> done) {
  std::unique_lock lock(mutex_);
  const auto found = clients_.find(victim);
  if (found == clients_.end()) {
    lock.unlock();
    return done();
  }
  Entry& entry = found->second;
  const std::shared_ptr<ServedClient> client = entry.client;
  if (!std::exchange(entry.cut_off, true)) {
    ++fences_;
    client->CutOff();
  }
  if (client->IsStill()) {
    lock.unlock();
    return done();
  }
  pending_.push_back({client, std::move(asker), std::move(done)});
  if (!fencer_.joinable()) fencer_ = std::thread([this] { RunFences(); });
  lock.unlock();
  wake_.notify_all();
}

void ServedNode::RunFences() {
  std::unique_lock lock(mutex_);
  while (!closing_) {
    if (pending_.empty()) {
      wake_.wait(lock);
      continue;
    }
    std::vector<Pending> ended;
    std::erase_if(pending_, [&](Pending& fence) {
      if (fence.asker.expired()) return true;
      if (!fence.client->IsStill()) return false;
      ended.push_back(std::move(fence));
      return true;
    });
    lock.unlock();
    for (const Pending& fence : ended) fence.done();
    if (ended.empty()) std::this_thread::sleep_for(kLook);
    lock.lock();
  }
}

}  // namespace farside::fabric::memory
