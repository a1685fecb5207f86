// Whether a socket's other end runs on the processor of the asking thread.
#include <sched.h>

#include <array>
#include <cstddef>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/descriptor.h"
#include "fabric/tcp/transport.h"
#include "tests/fabric/tcp/loopback.h"

namespace farside::fabric::tcp {
namespace {

// Two ends of one connection of this machine.
std::pair<Transport, Transport> Connected() {
  const LoopbackListener listener;
  Descriptor client = listener.Connect();
  return {Transport(std::move(client)), Transport(listener.Accept())};
}

std::vector<int> ProcessorsOfThisThread() {
  cpu_set_t allowed;
  std::vector<int> processors;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return processors;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &allowed)) processors.push_back(i);
  }
  return processors;
}

void RunOn(int processor) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(processor, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
}

// Asks on the first of these processors, after one byte was sent on the second.
bool SharesAfterSending(int asks, int sends) {
  auto [receiver, sender] = Connected();
  std::thread([&sender = sender, sends] {
    RunOn(sends);
    const std::array<std::byte, 1> one{};
    EXPECT_EQ(sender.Send(one).outcome, Transport::Outcome::kMoved);
  }).join();
  bool shares = false;
  std::thread([&receiver = receiver, asks, &shares] {
    RunOn(asks);
    std::array<std::byte, 1> one;
    EXPECT_EQ(receiver.Receive(one).outcome, Transport::Outcome::kMoved);
    shares = receiver.PeerSharesProcessor();
  }).join();
  return shares;
}

TEST(TcpTransport, APeerOnTheSameProcessor_SharesIt) {
  // Given two threads that may run on one processor only.
  const int processor = ProcessorsOfThisThread().at(0);
  // When one asks after the other has sent. Expect that it is told so.
  EXPECT_TRUE(SharesAfterSending(processor, processor));
}

TEST(TcpTransport, APeerOnAnotherProcessor_DoesNot) {
  // Given two threads on two processors.
  const std::vector<int> processors = ProcessorsOfThisThread();
  if (processors.size() < 2) GTEST_SKIP() << "there is one processor only";
  // When one asks after the other has sent. Expect that they do not share.
  EXPECT_FALSE(SharesAfterSending(processors[0], processors[1]));
}

}  // namespace
}  // namespace farside::fabric::tcp
