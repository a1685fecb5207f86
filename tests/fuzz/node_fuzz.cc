// What a node may send to a client over TCP: a Welcome, and what the client takes for answers. An input is a
// row of texts, each behind its length in two bytes: the first connection gets the first one, and so on, and
// then its end. Whatever they are, connecting and all that is in flight end with an answer or an error.
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "fabric/op.h"
#include "fabric/tcp/tcp.h"
#include "fabric/tcp/wire.h"
#include "tests/fabric/tcp/loopback.h"
#include "tests/fabric/tcp/world.h"
#include "tests/fuzz/target.h"

namespace farside::fuzz {
namespace {

namespace tcp = fabric::tcp;
namespace wire = fabric::tcp::wire;
using fabric::NodeId;
using fabric::Op;
using fabric::OpKind;

constexpr uint64_t kRegionBytes = 8192;

// In a thread of its own, as clients wait for a Welcome.
class HostileNode {
 public:
  HostileNode(const tcp::LoopbackListener& listener, Input texts)
      : listener_(listener), texts_(texts), thread_([this] { Serve(); }) {}
  ~HostileNode() {
    stops_ = true;
    const Descriptor last = listener_.Connect();
    thread_.join();
  }

 private:
  void Serve() {
    while (true) {
      const Descriptor peer = listener_.Accept();
      if (stops_) return;
      const std::span<const uint8_t> text = texts_.TakeBytes(texts_.Take<uint16_t>());
      // So small a text fits into the buffers of the socket.
      static_cast<void>(::send(peer.get(), text.data(), text.size(), MSG_NOSIGNAL));
      ::shutdown(peer.get(), SHUT_WR);
      std::array<std::byte, 4096> ignored;
      while (::recv(peer.get(), ignored.data(), ignored.size(), 0) > 0) continue;
    }
  }

  const tcp::LoopbackListener& listener_;
  Input texts_;
  std::atomic<bool> stops_{false};
  std::thread thread_;
};

Task<Done> ReadSome(fabric::Client& client, uint64_t offset, size_t size) {
  std::vector<std::byte> into(size);
  Op op(client, OpKind::kSearch);
  co_await op.InOrder(fabric::Read(tcp::At(offset), std::span(into)));
  co_return Done{};
}
Task<Done> ChangeSome(fabric::Client& client) {
  std::array<std::byte, 21> into{};
  Op op(client, OpKind::kUpdate);
  co_await op.InOrder(fabric::Cas(tcp::At(64), 0, 1), fabric::Read(tcp::At(131), std::span(into)),
                      fabric::Faa(tcp::At(8), 1));
  co_return Done{};
}
Task<Done> CallIt(fabric::Client& client) {
  Op op(client, OpKind::kUpdate);
  co_await op.Call(NodeId{0}, fabric::CallId(1, 1), "request");
  co_return Done{};
}
Task<Done> FenceAnother(fabric::Client& client) {
  Op op(client, OpKind::kMaintenance);
  co_await fabric::FenceEverywhere(op, fabric::ClientId{5});
  co_return Done{};
}

// All of it is in flight when the first answer is taken.
void Use(fabric::Client& client) {
  std::vector<Task<Done>> tasks;
  tasks.push_back(ReadSome(client, 3, 21));
  tasks.push_back(ChangeSome(client));
  tasks.push_back(CallIt(client));
  tasks.push_back(ReadSome(client, 0, 4096));
  tasks.push_back(FenceAnother(client));
  for (Task<Done>& task : tasks) task.Start();
  for (Task<Done>& task : tasks) {
    while (!task.done()) client.Poll();
    static_cast<void>(task.TakeResult());
  }
}

void AddText(Bytes& row, const Bytes& text) {
  Append(row, static_cast<uint16_t>(text.size()));
  row.insert(row.end(), text.begin(), text.end());
}
Bytes WelcomeOf(uint8_t status, std::string_view message = {}) {
  wire::Welcome welcome;
  welcome.status = status;
  welcome.region_id = {1, 2};
  welcome.region_bytes = kRegionBytes;
  welcome.message_bytes = static_cast<uint32_t>(message.size());
  Bytes bytes;
  Append(bytes, welcome);
  bytes.insert(bytes.end(), message.begin(), message.end());
  return bytes;
}
void AddReply(Bytes& text, wire::ReplyKind kind, const Bytes& body) {
  wire::ReplyHeader header{.body_bytes = static_cast<uint32_t>(body.size()), .kind = kind};
  if (kind != wire::ReplyKind::kAnswers) header.status = wire::StatusOf(ErrorCode::kInvalidArgument);
  Append(text, header);
  text.insert(text.end(), body.begin(), body.end());
}

}  // namespace

// A node that answers all; one that says goodbye, one that answers with an error, and two that refuse.
std::vector<Bytes> Seeds() {
  const Bytes welcome = WelcomeOf(0);
  Bytes called(16);
  called[0] = 5;
  std::vector<Bytes> texts(3, welcome);
  AddReply(texts[0], wire::ReplyKind::kAnswers, Bytes(24, 1));
  AddReply(texts[0], wire::ReplyKind::kAnswers, Bytes(8 + 24 + 8));
  AddReply(texts[0], wire::ReplyKind::kAnswers, called);
  AddReply(texts[0], wire::ReplyKind::kAnswers, Bytes(4096, 2));
  AddReply(texts[0], wire::ReplyKind::kAnswers, {});
  AddReply(texts[1], wire::ReplyKind::kAnswers, Bytes(24, 1));
  AddReply(texts[1], wire::ReplyKind::kGoodbye, {});
  AddReply(texts[2], wire::ReplyKind::kError, BytesOf("not so"));
  texts.push_back(WelcomeOf(wire::StatusOf(ErrorCode::kUnavailable), "too many"));
  std::vector<Bytes> seeds;
  for (const Bytes& text : texts) {
    Bytes& seed = seeds.emplace_back();
    AddText(seed, welcome);
    AddText(seed, text);
  }
  // An id that is known already.
  Bytes& again = seeds.emplace_back();
  AddText(again, welcome);
  AddText(again, WelcomeOf(wire::StatusOf(ErrorCode::kAlreadyExists)));
  AddText(again, texts[0]);
  return seeds;
}

void Try(Input input) {
  static const tcp::LoopbackListener listener;
  const HostileNode node(listener, input);
  tcp::Options options;
  options.addresses = {listener.address()};
  const auto opened = tcp::TcpFabric::Open(options);
  if (!opened.ok()) return;
  const auto client = (*opened)->Connect();
  if (client.ok()) Use(**client);
}

}  // namespace farside::fuzz
