// A fabric whose clients are those of another one, with a few functions replaced: what goes wrong in a test.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "fabric/client.h"
#include "fabric/fabric.h"
#include "fabric/trip.h"
#include "farside/result.h"

namespace farside {

// Does what the client that it has does. Derived classes replace what they need.
class WrappedClient : public fabric::Client {
 public:
  explicit WrappedClient(std::unique_ptr<fabric::Client> inner)
      : Client(inner->id(), inner->distance()), inner_(std::move(inner)) {}

  std::span<const uint64_t> region_bytes() const override { return inner_->region_bytes(); }
  Nanos Now() const override { return inner_->Now(); }
  bool Start(fabric::Trip& trip) override { return inner_->Start(trip); }
  void Abandon(fabric::Trip& trip) noexcept override { inner_->Abandon(trip); }
  void Detach(fabric::Order order, std::span<const fabric::Verb> verbs) override {
    inner_->Detach(order, verbs);
  }
  void Start(fabric::Timer& timer) override { inner_->Start(timer); }
  void Abandon(fabric::Timer& timer) noexcept override { inner_->Abandon(timer); }
  bool HasUnawaited() const override { return inner_->HasUnawaited(); }
  uint64_t trips_posted() const override { return inner_->trips_posted(); }
  bool HasUnawaitedOfFirst(uint64_t posted) const override { return inner_->HasUnawaitedOfFirst(posted); }
  bool Reaches(fabric::NodeId node) const override { return inner_->Reaches(node); }
  bool orders_reads() const override { return inner_->orders_reads(); }
  bool Poll() override { return inner_->Poll(); }

 protected:
  fabric::Client& inner() { return *inner_; }

 private:
  const std::unique_ptr<fabric::Client> inner_;
};

// Its clients are made from those of another fabric, and from a script that all of them share.
template <class Client, class Script>
class WrappedFabric final : public fabric::Fabric {
 public:
  WrappedFabric(std::unique_ptr<fabric::Fabric> inner, Script& script)
      : inner_(std::move(inner)), script_(script) {}

  std::string_view name() const override { return "wrapped"; }
  std::span<const uint64_t> region_bytes() const override { return inner_->region_bytes(); }
  Result<std::unique_ptr<fabric::Client>> Connect() override {
    Result<std::unique_ptr<fabric::Client>> client = inner_->Connect();
    if (!client.ok()) return client;
    return std::unique_ptr<fabric::Client>(std::make_unique<Client>(std::move(*client), script_));
  }

 private:
  const std::unique_ptr<fabric::Fabric> inner_;
  Script& script_;
};

}  // namespace farside
