// A client of the shm fabric: it executes its verbs itself, on memory that it has mapped
// (fabric/memory/direct_client.h). The daemon of a node takes part in Calls and fences only, over a socket.
//
// It has a slot on every node, and so a gate per node. A gate that is closed says that the client was fenced,
// or that the daemon has stopped. A daemon that was killed has its lifeline cut (lifeline.h), which the
// client looks at before every trip: so no operation that begins when the kernel has ended the daemon is
// acknowledged. Where the kernel cuts no lifelines, the connection tells: it is looked at every few thousand
// trips, and when the client waits for something. What was written to the memory in between is lost with it,
// if it is no file.
//
// A fence is final. The daemon closes the victim's gate in its own memory, so that the victim can enter it no
// more, and answers when the turn in which the victim may have been has ended (gate/1): by itself, or because
// the process is known to be gone and its lines have been completed. It never concludes anything from
// silence. The id is not admitted again (node/1), and the slot is given to no other client until the victim's
// process has closed its connection.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/descriptor.h"
#include "fabric/memory/direct_client.h"
#include "fabric/memory/line_memory.h"
#include "fabric/shm/layout.h"
#include "fabric/shm/lifeline.h"
#include "fabric/shm/mapping.h"

namespace farside::fabric::shm {

// What a client has of one node: a connection, a slot, and the memory.
class Link final : public memory::Watch {
 public:
  // `node` is how the daemon is called in messages.
  Link(std::string node, Descriptor socket, std::shared_ptr<Mapping> mapping, uint32_t slot);
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  ~Link() override;

  const std::string& node() const { return node_; }
  memory::LineMemory& memory() { return memory_; }
  memory::Gate& gate() { return mapping_->control().slots[slot_].gate; }

  // Sends a request and waits for its reply, whose bytes are left in `payload`. Nothing if the daemon is
  // gone.
  std::optional<WireStatus> Ask(const Request& request, std::span<const std::byte> body,
                                std::string& payload);

  const std::atomic<uint32_t>& lifeline() const { return mapping_->control().header.lifeline; }

  // Whether the daemon has stopped or died.
  bool IsGone() const;
  bool MayBeFinished(const memory::Sequence&, std::optional<Nanos>&) override { return !IsGone(); }

 private:
  const std::string node_;
  const Descriptor socket_;
  const std::shared_ptr<Mapping> mapping_;
  const uint32_t slot_;
  memory::LineMemory memory_;
};

class ShmClient final : public memory::DirectClient {
 public:
  // `region_bytes` and `clock` must outlive the client. One link per node.
  ShmClient(ClientId id, std::span<const uint64_t> region_bytes, const Clock& clock,
            std::vector<std::unique_ptr<Link>> links);

  bool Start(Trip& trip) override;
  using DirectClient::Start;
  void Detach(Order order, std::span<const Verb> verbs) override;
  bool Poll() override;
  bool CanTellGoneClients() const override { return true; }

 private:
  std::optional<Error> Call(Verb& verb) override;
  std::optional<Error> Fence(const Verb& verb) override;
  Error Closed(NodeId node) override;
  Error Stuck(NodeId node) override;

  // Whether a daemon has died. One load a node.
  bool AnyIsCut() const {
    for (const std::atomic<uint32_t>* lifeline : lifelines_) {
      if (IsCut(*lifeline)) [[unlikely]]
        return true;
    }
    return false;
  }
  void LookAround();
  void LookAtNodes();
  void BreakAndLetGo(Error error);
  Error Gone(NodeId node) const;
  Link& LinkOf(NodeId node) { return *links_[Index(node)]; }

  std::vector<std::unique_ptr<Link>> links_;             // empty when the client is broken for good
  std::vector<const std::atomic<uint32_t>*> lifelines_;  // of the links
  const std::vector<std::string> nodes_;                 // their names
  uint32_t until_look_;
};

}  // namespace farside::fabric::shm
