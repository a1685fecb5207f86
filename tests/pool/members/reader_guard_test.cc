// What the guard of a reader lets through, verb by verb; hostile_reader_test.cc has it in a server.
#include "pool/members/reader_guard.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

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

// ---- readers of one node ------------------------------------------------------------------------------

// Takes the first free slot.
class Reader {
 public:
  Reader(const fabric::memory::NewReaderGuard& make, fabric::memory::LineMemory& memory,
         const Geometry& geometry, uint32_t id)
      : memory_(memory), geometry_(geometry), id_(id), guard_(*make(memory, ClientId{id})) {}

  bool Take() {
    uint32_t slot = 0;
    while (Word(slot).state() != ClientState::kFree) ++slot;
    return Move(slot, Word(slot).JoinedBy(ClientId{id_}));
  }
  bool GiveBack(uint32_t slot) { return Move(slot, Word(slot).Freed()); }
  fabric::memory::ReaderGuard& guard() { return *guard_; }

 private:
  ClientWord Word(uint32_t slot) const { return ClientWord(memory_.Load(geometry_.client_slot(slot))); }
  bool Move(uint32_t slot, ClientWord to) {
    const fabric::FarAddr at(fabric::NodeId{0}, geometry_.client_slot(slot));
    Verb verb = fabric::Cas(at, Word(slot).word(), to.word()).verb;
    if (!guard_->May(verb)) return false;
    memory_.Execute(verb);
    guard_->Executed(verb);
    return true;
  }

  fabric::memory::LineMemory& memory_;
  const Geometry geometry_;
  const uint32_t id_;
  std::unique_ptr<fabric::memory::ReaderGuard> guard_;
};

TEST_F(ReaderGuard, ReadersTogether_HaveHalfOfTheSlots) {
  // Given readers that have half of the slots. Expect that one more gets none, until one of them gives its
  // slot back, or departs.
  const auto make = GuardReaders(kGeometry);
  std::vector<Reader> readers;
  for (uint32_t id = 100; id < 105; ++id) readers.emplace_back(make, memory_, kGeometry, id);
  for (size_t i = 0; i < 4; ++i) EXPECT_TRUE(readers[i].Take());
  EXPECT_FALSE(readers[4].Take());
  EXPECT_TRUE(readers[0].GiveBack(0));
  EXPECT_TRUE(readers[4].Take());
  Reader last(make, memory_, kGeometry, 200);
  EXPECT_FALSE(last.Take());
  readers[0].guard().Depart();  // it has none any more
  EXPECT_FALSE(last.Take());
  readers[1].guard().Depart();
  EXPECT_TRUE(last.Take());
}

TEST_F(ReaderGuard, AFencedSlot_CountsAsOneOfReadersUntilItIsReleased) {
  // Given readers that have half of the slots, and a member that has fenced them all. When they depart.
  // Expect that no other reader gets a slot, however many come, before the member has released one.
  const auto make = GuardReaders(kGeometry);
  std::vector<Reader> readers;
  for (uint32_t id = 100; id < 104; ++id) readers.emplace_back(make, memory_, kGeometry, id);
  for (Reader& reader : readers) ASSERT_TRUE(reader.Take());
  const std::vector<uint32_t> slots = {0, 1, 3, 4};  // another client has the slot between
  for (const uint32_t slot : slots) memory_.Store(At(slot), Slot(slot).With(ClientState::kFenced).word());
  for (Reader& reader : readers) reader.guard().Depart();
  for (uint32_t id = 110; id < 113; ++id) EXPECT_FALSE(Reader(make, memory_, kGeometry, id).Take());
  memory_.Store(At(4), Slot(4).Freed().word());
  Reader next(make, memory_, kGeometry, 120);
  EXPECT_TRUE(next.Take());
  EXPECT_FALSE(Reader(make, memory_, kGeometry, 121).Take());
  // Expect the same of a slot that another client has taken meanwhile.
  memory_.Store(At(3), Slot(3).Freed().JoinedBy(kOther).word());
  Reader last(make, memory_, kGeometry, 122);
  EXPECT_TRUE(last.Take());
  EXPECT_FALSE(Reader(make, memory_, kGeometry, 123).Take());
}

TEST_F(ReaderGuard, AReaderOfAPoolWithOneSlot_MayHaveIt) {
  Geometry geometry = kGeometry;
  geometry.client_slots = 1;
  const auto make = GuardReaders(geometry);
  Reader reader(make, memory_, geometry, 100);
  EXPECT_TRUE(reader.Take());
}

// ---- lines that are held ------------------------------------------------------------------------------

// A holder of lines that does not go on: the memory gives up at once.
class NoPatience final : public fabric::memory::Watch {
 public:
  bool MayBeFinished(const fabric::memory::Sequence&, std::optional<Nanos>&) override { return false; }
};

class ReaderGuardAndAStuckLine : public ReaderGuard {
 protected:
  fabric::memory::Sequence& SequenceOf(uint32_t slot) {
    return stripes_->sequences[At(slot) / kLine % fabric::memory::StripeTable::kStripes];
  }
  void Hold(uint32_t slot) { SequenceOf(slot) |= 5; }
  void LetGo(uint32_t slot) { SequenceOf(slot) &= ~fabric::memory::kHolderMask; }

  NoPatience watch_;
  fabric::memory::LineMemory impatient_{region_.bytes(), *stripes_, &watch_};
};

TEST_F(ReaderGuardAndAStuckLine, AnId_IsNotAdmittedUnseen) {
  // Given a slot that names another client. When its line cannot be read. Expect that no reader comes in: it
  // may be the one with that id.
  Hold(kOthersSlot);
  const auto refused = GuardReaders(kGeometry)(impatient_, kOther);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), ErrorCode::kUnavailable);
}

TEST_F(ReaderGuardAndAStuckLine, AReaderThatDeparts_ItsSlotIsFreedLater) {
  // Given a reader with a slot. When it departs while the line of the slot is held.
  const auto make = GuardReaders(kGeometry);
  auto reader = std::make_unique<Reader>(make, impatient_, kGeometry, 100);
  ASSERT_TRUE(reader->Take());
  const ClientWord taken = Slot(0);
  Hold(0);
  reader->guard().Depart();
  reader.reset();
  LetGo(0);
  EXPECT_EQ(Slot(0), taken);
  // Expect that the slot is free when the next reader comes.
  EXPECT_TRUE(make(impatient_, ClientId{101}).ok());
  EXPECT_EQ(Slot(0), taken.Freed());
}

TEST_F(ReaderGuardAndAStuckLine, ASlotThatIsNotFreedYet_CountsAsOneOfReaders) {
  // Given readers that have half of the slots. When one departs while the line of its slot is held. Expect
  // that another gets none, before that slot is free.
  const auto make = GuardReaders(kGeometry);
  std::vector<Reader> readers;
  for (uint32_t id = 100; id < 105; ++id) readers.emplace_back(make, impatient_, kGeometry, id);
  for (size_t i = 0; i < 4; ++i) ASSERT_TRUE(readers[i].Take());
  Hold(0);
  readers[0].guard().Depart();
  LetGo(0);
  EXPECT_FALSE(readers[4].Take());
  ASSERT_TRUE(make(impatient_, ClientId{106}).ok());
  EXPECT_TRUE(readers[4].Take());
}

TEST_F(ReaderGuard, AnIdThatIsRegistered_IsRefused) {
  const auto refused = GuardReaders(kGeometry)(memory_, kOther);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), ErrorCode::kAlreadyExists);
}

}  // namespace
}  // namespace farside::pool
