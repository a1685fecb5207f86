#include "pool/members/reader_guard.h"

#include <gtest/gtest.h>

#include <map>

namespace farside::pool {
namespace {

using fabric::ClientId;
using fabric::Verb;
using fabric::VerbKind;

constexpr ClientId kReader{7};
constexpr ClientId kOther{8};
constexpr uint32_t kOwnSlot = 1;
constexpr uint32_t kOthersSlot = 2;
constexpr uint32_t kFreeSlot = 3;

class Words final : public fabric::NodeMemory {
 public:
  uint64_t bytes() const override { return uint64_t{1} << 20; }
  uint64_t Load(uint64_t offset) const override {
    const auto found = words_.find(offset);
    return found == words_.end() ? 0 : found->second;
  }
  void Store(uint64_t offset, uint64_t word) override { words_[offset] = word; }

 private:
  std::map<uint64_t, uint64_t> words_;
};

class ReaderGuard : public testing::Test {
 protected:
  ReaderGuard() {
    memory_.Store(geometry_.client_slot(kOwnSlot), live_.word());
    memory_.Store(geometry_.client_slot(kOthersSlot), others_.word());
    memory_.Store(geometry_.client_slot(kFreeSlot), free_.word());
  }
  bool May(const Verb& verb) { return ReaderMay(memory_, geometry_, kReader, verb); }
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

  const Geometry geometry_{.region_bytes = 1 << 20, .client_slots = 8, .table_slots = 4, .chunk_bytes = 4096};
  const ClientWord live_{ClientState::kLive, 3, kReader};
  const ClientWord others_{ClientState::kLive, 5, kOther};
  const ClientWord free_{ClientState::kFree, 9, ClientId::kNone};
  Words memory_;
};

TEST_F(ReaderGuard, AReader_JoinsBeatsAndLeaves) {
  const ClientWord joining(ClientState::kJoining, 10, kReader);
  EXPECT_TRUE(May(Cas(geometry_.client_slot(kFreeSlot), free_, joining)));
  memory_.Store(geometry_.client_slot(kFreeSlot), joining.word());
  EXPECT_TRUE(May(Write(geometry_.client_slot(kFreeSlot) + kPulseOffset, sizeof(Pulse))));
  EXPECT_TRUE(May(Cas(geometry_.client_slot(kFreeSlot), joining, joining.With(ClientState::kLive))));

  EXPECT_TRUE(May(Write(geometry_.client_slot(kOwnSlot) + kHeartbeatOffset, 8)));
  EXPECT_TRUE(
      May(Cas(geometry_.client_slot(kOwnSlot), live_, ClientWord(ClientState::kFree, 3, ClientId::kNone))));
}

TEST_F(ReaderGuard, AReader_ChangesNothingOfOthers) {
  EXPECT_FALSE(May(Write(geometry_.client_slot(kOthersSlot) + kPulseOffset, sizeof(Pulse))));
  EXPECT_FALSE(May(Write(geometry_.client_slot(kFreeSlot) + kPulseOffset, sizeof(Pulse))));
  EXPECT_FALSE(May(Cas(geometry_.client_slot(kOthersSlot), others_, others_.With(ClientState::kFenced))));
  EXPECT_FALSE(
      May(Cas(geometry_.client_slot(kOthersSlot), others_, ClientWord(ClientState::kJoining, 6, kReader))));
  EXPECT_FALSE(
      May(Cas(geometry_.client_slot(kFreeSlot), free_, ClientWord(ClientState::kJoining, 10, kOther))));
  EXPECT_FALSE(
      May(Cas(geometry_.client_slot(kFreeSlot), free_, ClientWord(ClientState::kLive, 10, kReader))));
}

TEST_F(ReaderGuard, AReader_ChangesNothingElse) {
  EXPECT_FALSE(May(Write(geometry_.client_slot(kOwnSlot), 8)));                  // the state word, by a WRITE
  EXPECT_FALSE(May(Write(geometry_.client_slot(kOwnSlot) + kPulseOffset, 32)));  // beyond the pulse
  EXPECT_FALSE(May(Write(geometry_.client_slot(kOwnSlot) + kPulseOffset, 1 << 16)));
  EXPECT_FALSE(May(Write(0, 8)));
  EXPECT_FALSE(May(Write(geometry_.catalog(), 8)));
  EXPECT_FALSE(May(Write(~uint64_t{0}, 8)));
  EXPECT_FALSE(May(Cas(kEpochOffset, ClientWord(1), ClientWord(2))));
  EXPECT_FALSE(May(Cas(geometry_.client_slot(kOwnSlot), live_, live_.With(ClientState::kFenced))));
  EXPECT_FALSE(May(Cas(geometry_.client_slot(kOwnSlot), live_, ClientWord(ClientState::kLive, 3, kOther))));
  Verb faa = Cas(geometry_.client_slot(kOwnSlot), live_, live_);
  faa.kind = VerbKind::kFaa;
  EXPECT_FALSE(May(faa));
  faa.kind = VerbKind::kMaskedCas;
  EXPECT_FALSE(May(faa));
}

}  // namespace
}  // namespace farside::pool
