// What processes share to use one region: the control memory, and the messages of the socket over which they
// get it. docs/layouts/shm.md explains both with an example.
//
// The control memory is a sealed memfd of kControlBytes. The region is another descriptor, of its own size.
//
//        0   Header        page 0
//     4096   StripeTable   pages 1 to 8: the sequences of the region's lines (fabric/memory/line_memory.h)
//    36864   ClientSlot 0       256 bytes each: what one connected client has for itself
//    37120   ClientSlot 1
//            ...           kClientSlots of them
//
// Everything is written by processes of one machine, so numbers have the machine's own order of bytes.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "fabric/address.h"
#include "fabric/memory/gate.h"
#include "fabric/memory/line_memory.h"
#include "fabric/memory/served_node.h"
#include "farside/result.h"

namespace farside::fabric::shm {

inline constexpr uint64_t kMagic = 0x316d68732d726166;  // "far-shm1"
// Of the control memory and of the messages. Clients and daemons of different versions refuse each other.
inline constexpr uint32_t kVersion = 2;
inline constexpr uint32_t kClientSlots = 4096;
static_assert(kClientSlots < memory::kTheNode, "a holder is a slot plus one");

// ---- control memory ---------------------------------------------------------------------------------

// Written by the daemon only, before the first client comes, but for `left`; and by the kernel.
struct alignas(kPageBytes) Header {
  uint64_t magic;
  uint32_t version;
  uint32_t slots;
  uint64_t region_bytes;
  memory::RegionId region_id;
  uint64_t instance;           // of this control memory; drawn at random
  std::atomic<uint64_t> left;  // not 0: the daemon has stopped serving, and will not come back to this memory
  std::atomic<uint32_t> lifeline;  // tells that the daemon has ended, however it ended (lifeline.h)
};
static_assert(sizeof(Header) == kPageBytes);
static_assert(offsetof(Header, region_bytes) == 16);
static_assert(offsetof(Header, region_id) == 24);
static_assert(offsetof(Header, instance) == 40);
static_assert(offsetof(Header, left) == 48);
static_assert(offsetof(Header, lifeline) == 56);

// The client writes its gate, which the daemon closes; only the client writes its staging. The daemon empties
// both before it gives the slot to another client. 256 bytes, so that neighbours do not share what a
// processor fetches together.
struct alignas(256) ClientSlot {
  memory::Gate gate;
  std::array<std::byte, kLineBytes> unused;  // zero
  memory::Staging staging;
};
static_assert(sizeof(ClientSlot) == 256);
static_assert(offsetof(ClientSlot, gate) == 0);
static_assert(offsetof(ClientSlot, staging) == 128);

struct Control {
  Header header;
  memory::StripeTable stripes;
  std::array<ClientSlot, kClientSlots> slots;
};
inline constexpr uint64_t kControlBytes = sizeof(Control);
static_assert(offsetof(Control, stripes) == 4096);
static_assert(offsetof(Control, slots) == 36864);
static_assert(kControlBytes == 36864 + uint64_t{kClientSlots} * 256);

// The number with which the client of a slot takes sequences.
constexpr memory::Holder HolderOf(uint32_t slot) { return static_cast<memory::Holder>(slot + 1); }

// ---- messages ---------------------------------------------------------------------------------------
// A Unix socket of type SOCK_SEQPACKET: one message is one datagram, and the end of a process is the end of
// its connection. A client has one request under way at most.
//
//   client                                     daemon
//   Hello{id}                 -------------->
//                             <--------------  Welcome + text, with descriptors of control memory and region
//   Request + payload         -------------->
//                             <--------------  Reply + payload

// The most that a request or a reply carries behind its head.
inline constexpr uint32_t kMaxPayload = 64 * 1024;
// The most text behind a Welcome.
inline constexpr uint32_t kMaxText = 1024;

// 0, or one more than the ErrorCode.
using WireStatus = uint32_t;
inline constexpr WireStatus kWireOk = 0;
constexpr WireStatus ToWire(ErrorCode code) { return static_cast<WireStatus>(code) + 1; }
// What is no code that we know says nothing but that it failed.
constexpr ErrorCode FromWire(WireStatus status) {
  constexpr WireStatus kLast = ToWire(ErrorCode::kUnsupported);
  return status >= 1 && status <= kLast ? static_cast<ErrorCode>(status - 1) : ErrorCode::kUnavailable;
}
static_assert(ToWire(ErrorCode::kInvalidArgument) == 1 && ToWire(ErrorCode::kUnsupported) == 12,
              "new codes go to the end, or raise kVersion");

struct Hello {
  uint64_t magic;
  uint32_t version;
  uint32_t client;  // 0: only asks for the memory and gets no slot
};
static_assert(sizeof(Hello) == 16);

struct Welcome {
  uint64_t magic;
  uint32_t version;
  WireStatus status;  // if not 0, the text says why, the rest is zero, and there are no descriptors
  uint64_t region_bytes;
  uint64_t control_bytes;
  memory::RegionId region_id;
  uint64_t instance;
  uint32_t slot;
  uint32_t text_bytes;
};
static_assert(sizeof(Welcome) == 64);

enum class RequestKind : uint32_t { kCall = 1, kFence = 2 };
struct Request {
  RequestKind kind;
  uint32_t payload_bytes;
  uint16_t engine;     // of a Call
  uint16_t operation;  // of a Call
  uint32_t victim;     // of a fence
};
static_assert(sizeof(Request) == 16);

struct Reply {
  WireStatus status;  // if not 0, the payload is the message of the error
  uint32_t payload_bytes;
};
static_assert(sizeof(Reply) == 8);

inline constexpr size_t kMaxMessage = sizeof(Request) + kMaxPayload;

}  // namespace farside::fabric::shm
