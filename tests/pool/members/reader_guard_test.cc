// What the guard of a reader lets through, verb by verb; hostile_reader_test.cc has it in a server.
#include "pool/members/reader_guard.h"

#include <gtest/gtest.h>

#include <memory>

#include "fabric/memory/region.h"

namespace farside::pool {
namespace {

using fabric::ClientId;
using fabric::Verb;
using fabric::VerbKind;

constexpr ClientId kReader{7};
constexpr ClientId kOther{8};
constexpr uint32_t kOwnSlot = 1;
constexpr uint32_t kOthersSlot = 2;

class ReaderGuard : public testing::Test {
 protected:
  ReaderGuard() {
    memory_.Store(At(kOwnSlot), free_.word());
    memory_.Store(At(kOthersSlot), others_.word());
  }
  static uint64_t At(uint32_t slot) { return kGeometry.client_slot(slot); }
  ClientWord Slot(uint32_t slot) const { return ClientWord(memory_.Load(At(slot))); }
  bool May(const Verb& verb) { return guard_->May(verb); }
  // As a server does it.
  bool Do(Verb verb) {
    if (!guard_->May(verb)) return false;
    memory_.Execute(verb);
    guard_->Executed(verb);
    return true;
  }
  void Join() {
    ASSERT_TRUE(Do(Cas(At(kOwnSlot), free_, joining_)));
    ASSERT_TRUE(Do(Cas(At(kOwnSlot), joining_, live_)));
  }
  static Verb Cas(uint64_t at, ClientWord expect, ClientWord desired) {
    return fabric::Cas(fabric::FarAddr(fabric::NodeId{0}, at), expect.word(), desired.word()).verb;
  }
  static Verb Write(uint64_t at, uint64_t size) {
    Verb verb;
    verb.kind = VerbKind::kWrite;
    verb.at = fabric::FarAddr(fabric::NodeId{0}, at);
    verb.size = size;
    return verb;
  }

  static constexpr Geometry kGeometry{
      .region_bytes = 1 << 20, .client_slots = 8, .table_slots = 4, .chunk_bytes = 4096};
  const ClientWord free_{ClientState::kFree, 9, ClientId::kNone};
  const ClientWord joining_{ClientState::kJoining, 10, kReader};
  const ClientWord live_{ClientState::kLive, 10, kReader};
  const ClientWord left_{ClientState::kFree, 10, ClientId::kNone};
  const ClientWord others_{ClientState::kLive, 5, kOther};
  fabric::memory::Region region_{*fabric::memory::Region::Anonymous(kGeometry.region_bytes)};
  std::unique_ptr<fabric::memory::StripeTable> stripes_{std::make_unique<fabric::memory::StripeTable>()};
  fabric::memory::LineMemory memory_{region_.bytes(), *stripes_};
  std::unique_ptr<fabric::memory::ReaderGuard> guard_{*GuardReaders(kGeometry)(memory_, kReader)};
};

TEST_F(ReaderGuard, AReader_JoinsBeatsAndLeaves) {
  EXPECT_TRUE(Do(Cas(At(kOwnSlot), free_, joining_)));
  EXPECT_TRUE(May(Write(At(kOwnSlot) + kPulseOffset, sizeof(Pulse))));
  EXPECT_TRUE(Do(Cas(At(kOwnSlot), joining_, live_)));
  EXPECT_TRUE(May(Write(At(kOwnSlot) + kHeartbeatOffset, 8)));
  EXPECT_TRUE(Do(Cas(At(kOwnSlot), live_, left_)));
  EXPECT_EQ(Slot(kOwnSlot), left_);
}

TEST_F(ReaderGuard, AReader_WhoseCasFailed_TriesAnotherSlot) {
  // Given a reader that has read a registry which has changed since. Expect that it has no slot, and may take
  // another.
  memory_.Store(At(kOwnSlot), joining_.With(ClientState::kFenced).word());
  EXPECT_TRUE(Do(Cas(At(kOwnSlot), free_, joining_)));
  EXPECT_FALSE(May(Write(At(kOwnSlot) + kPulseOffset, sizeof(Pulse))));
  EXPECT_TRUE(Do(Cas(At(5), ClientWord(), ClientWord(ClientState::kJoining, 1, kReader))));
  EXPECT_TRUE(May(Write(At(5) + kPulseOffset, sizeof(Pulse))));
}

TEST_F(ReaderGuard, AReader_TakesASlotOnlyAsAClientDoes) {
  EXPECT_FALSE(May(Cas(At(kOwnSlot), free_, ClientWord(ClientState::kJoining, 10, kOther))));
  EXPECT_FALSE(May(Cas(At(kOwnSlot), free_, live_)));
  EXPECT_FALSE(May(Cas(At(kOwnSlot), free_, ClientWord(ClientState::kJoining, 11, kReader))));
  EXPECT_FALSE(May(Cas(At(kOwnSlot), free_, ClientWord(joining_.word() | 0x10))));
  EXPECT_FALSE(May(Cas(At(kOwnSlot) + 8, free_, joining_)));
  EXPECT_FALSE(May(Cas(At(kGeometry.client_slots), free_, joining_)));
  // A generation begins anew at 1, because 0 is that of no client.
  const ClientWord last(ClientState::kFree, 0xfffff, ClientId::kNone);
  EXPECT_TRUE(May(Cas(At(kOwnSlot), last, ClientWord(ClientState::kJoining, 1, kReader))));
}

TEST_F(ReaderGuard, AReader_HasOneSlot_Once) {
  Join();
  const ClientWord second(ClientState::kJoining, 1, kReader);
  EXPECT_FALSE(May(Cas(At(5), ClientWord(), second)));
  EXPECT_TRUE(Do(Cas(At(kOwnSlot), live_, left_)));
  EXPECT_FALSE(May(Cas(At(5), ClientWord(), second)));
  EXPECT_FALSE(May(Write(At(kOwnSlot) + kPulseOffset, sizeof(Pulse))));
}

TEST_F(ReaderGuard, AReader_ChangesNothingOfOthers) {
  Join();
  // Also where its own name stands, which another client may have put there.
  memory_.Store(At(5), ClientWord(ClientState::kLive, 3, kReader).word());
  for (const uint32_t slot : {kOthersSlot, 3U, 5U}) {
    EXPECT_FALSE(May(Write(At(slot) + kPulseOffset, sizeof(Pulse))));
    EXPECT_FALSE(May(Cas(At(slot), Slot(slot), Slot(slot).With(ClientState::kFenced))));
    EXPECT_FALSE(May(Cas(At(slot), Slot(slot), Slot(slot).Freed())));
  }
}

TEST_F(ReaderGuard, AReader_ChangesNothingElse) {
  Join();
  EXPECT_FALSE(May(Write(At(kOwnSlot), 8)));                  // the state word, by a WRITE
  EXPECT_FALSE(May(Write(At(kOwnSlot) + kPulseOffset, 32)));  // beyond the pulse
  EXPECT_FALSE(May(Write(At(kOwnSlot) + kPulseOffset, 1 << 16)));
  EXPECT_FALSE(May(Write(0, 8)));
  EXPECT_FALSE(May(Write(kGeometry.catalog(), 8)));
  EXPECT_FALSE(May(Write(~uint64_t{0}, 8)));
  EXPECT_FALSE(May(Cas(kEpochOffset, ClientWord(1), ClientWord(2))));
  EXPECT_FALSE(May(Cas(At(kOwnSlot), live_, joining_)));
  EXPECT_FALSE(May(Cas(At(kOwnSlot), live_, live_.With(ClientState::kFenced))));
  EXPECT_FALSE(May(Cas(At(kOwnSlot), live_, ClientWord(live_.word() + 7))));
  EXPECT_FALSE(May(Cas(At(kOwnSlot), live_, ClientWord(ClientState::kLive, 10, kOther))));
  EXPECT_FALSE(May(Cas(At(kOwnSlot), live_, free_)));  // the generation before
  Verb verb = Cas(At(kOwnSlot), live_, left_);
  for (const VerbKind kind : {VerbKind::kFaa, VerbKind::kMaskedCas, VerbKind::kCall, VerbKind::kFence}) {
    verb.kind = kind;
    EXPECT_FALSE(May(verb));
  }
}

TEST_F(ReaderGuard, AReaderThatDeparts_LeavesAFreeSlot) {
  Join();
  guard_->Depart();
  EXPECT_EQ(Slot(kOwnSlot), left_);
}

TEST_F(ReaderGuard, AReaderThatWasFenced_IsLeftToTheMembers) {
  // Given a reader whose slot a member has marked as fenced, or released since, or has got itself.
  const ClientWord successor(ClientState::kLive, 11, kOther);
  for (const ClientWord now : {live_.With(ClientState::kFenced), left_, successor}) {
    memory_.Store(At(kOwnSlot), free_.word());
    guard_ = std::move(*GuardReaders(kGeometry)(memory_, kReader));
    Join();
    memory_.Store(At(kOwnSlot), now.word());
    // When it departs. Expect that the slot stays as it is.
    guard_->Depart();
    EXPECT_EQ(Slot(kOwnSlot), now);
  }
}

TEST_F(ReaderGuard, AnIdThatIsRegistered_IsRefused) {
  const auto refused = GuardReaders(kGeometry)(memory_, kOther);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), ErrorCode::kAlreadyExists);
}

}  // namespace
}  // namespace farside::pool
