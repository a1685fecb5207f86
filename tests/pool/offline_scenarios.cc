#include "tests/pool/offline_scenarios.h"

#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace farside::pool {

namespace {

constexpr fabric::NodeId kHome{0};   // of roots, catalog and announcements
constexpr fabric::NodeId kOther{1};  // of blocks
constexpr uint64_t kLineAt = 128 * 1024;
constexpr char kUsedAgain[] = "memory is used again under an operation";

// Two nodes, a client that reads, and one that writes.
struct Pair {
  Pair() : run(PoolCalm(), SmallGeometry(), 2), reader(run), writer(run) {}

  bool Begin() { return reader.Join().ok() && writer.Join().ok() && writer.Publish(0).ok(); }
  void HoldReader(Nanos duration) {
    for (const fabric::NodeId node : {kHome, kOther}) run.world().Hold(reader.client().id(), node, duration);
  }
  // Until the task has ended.
  template <class T>
  bool Finish(Task<T>& task) {
    while (!task.done()) {
      if (!run.world().Step()) return false;
    }
    return task.TakeResult().ok();
  }
  // Whether the writer gets the block of root 0 again, in less than a lease.
  bool IsUsedAgain() {
    const uint64_t block = writer.BlockOf(0);
    if (!writer.Unlink(0).ok()) return false;
    for (int round = 0; round < 20; ++round) {
      if (!writer.Maintain().ok() || !writer.Publish(1).ok()) return false;
      const bool same = writer.BlockOf(1) == block;
      if (same || !writer.Unlink(1).ok()) return same;
      writer.Wait(kTestLease / 32);
    }
    return false;
  }

  PoolRun run;
  ManualClient reader;
  ManualClient writer;
};

// Plays a scenario for every number of events after which it may hold something up; the scenario says when
// there are no more.
struct Cut {
  uint64_t events = 0;
  bool ended = false;  // what is to be held up has ended before

  // Lets so many events happen after the start of the task.
  template <class T>
  void Advance(PoolRun& run, Task<T>& task) {
    for (uint64_t event = 0; event < events && !task.done(); ++event) run.world().Step();
    ended = task.done();
  }
};
std::string ForEveryCut(const std::function<std::string(Cut&)>& play) {
  Cut cut;
  for (; !cut.ended; ++cut.events) {
    std::string problem = play(cut);
    if (!problem.empty()) return problem;
  }
  return cut.events > 1 ? "" : "there is nothing to hold up";
}

}  // namespace

// ---- off/1, off/2 ------------------------------------------------------------------------------------

std::string TheOfflinePulseIsLate() {
  Pair pair;
  if (!pair.Begin()) return "a client cannot join";
  fabric::Op op(pair.reader.client(), fabric::OpKind::kMaintenance);
  fabric::Op back_op(pair.reader.client(), fabric::OpKind::kMaintenance);
  Task<bool> away = pair.reader.pool().GoOffline(op);
  away.Start();
  pair.run.world().Hold(pair.reader.client().id(), kOther, kTestLease / 4);
  Task<Done> back = pair.reader.pool().ComeOnline(back_op);
  back.Start();
  if (!pair.Finish(back) || !pair.Finish(away)) return "the reader cannot come back";
  const PoolClient::Pin pin = pair.reader.pool().Begin();
  return pair.IsUsedAgain() ? kUsedAgain : "";
}

std::string AVerbIsOnItsWayWhenItsClientShouldGoOffline() {
  Pair pair;
  if (!pair.Begin() || !pair.reader.DetachCas(0).ok()) return "a client cannot join";
  pair.HoldReader(kTestLease * 3 / 4);
  if (!pair.reader.GoOffline().ok()) return "the reader is cut off";
  return pair.IsUsedAgain() && pair.reader.client().HasUnawaited() ? kUsedAgain : "";
}

std::string AnOperationIsInFlightWhenItsClientShouldGoOffline() {
  Pair pair;
  if (!pair.Begin()) return "a client cannot join";
  const PoolClient::Pin pin = pair.reader.pool().Begin();
  if (!pair.reader.GoOffline().ok()) return "the reader is cut off";
  return pair.IsUsedAgain() ? kUsedAgain : "";
}

std::string ThePulseOfAReturnIsLate() {
  Pair pair;
  if (!pair.Begin()) return "a client cannot join";
  const Result<bool> away = pair.reader.GoOffline();
  if (!away.ok() || !*away) return "the reader cannot go offline";
  fabric::Op op(pair.reader.client(), fabric::OpKind::kMaintenance);
  Task<Done> back = pair.reader.pool().ComeOnline(op);
  back.Start();
  pair.run.world().Hold(pair.reader.client().id(), kOther, kTestLease * 3 / 4);
  if (!pair.Finish(back)) return "the reader cannot come back";
  const PoolClient::Pin pin = pair.reader.pool().Begin();
  return pair.IsUsedAgain() ? kUsedAgain : "";
}

// ---- off/2, off/3: listeners -------------------------------------------------------------------------

namespace {

// Has always something to add, and remembers the largest first word of its line.
class EagerListener final : public SyncListener {
 public:
  explicit EagerListener(uint64_t line) : line_(line) {}
  void MissedSync() override {}
  SyncRequest BeforeSync(bool may_add) override {
    return SyncRequest{.add_at = may_add ? line_ + 8 : 0, .delta = 1, .read_at = line_};
  }
  void AfterSync(std::span<const std::byte, kLine> line) override {
    uint64_t word = 0;
    std::memcpy(&word, line.data(), sizeof word);
    known_ = std::max(known_, word);
  }
  uint64_t known() const { return known_; }

 private:
  const uint64_t line_;
  uint64_t known_ = 0;
};

Task<Done> AddOne(fabric::Op& op, fabric::FarAddr at) {
  co_await op.InOrder(fabric::Faa(at, 1));
  co_return Done{};
}

std::string AnnounceWhileAClientComesBack(Cut& cut) {
  Pair pair;
  if (!pair.Begin()) return "a client cannot join";
  const auto listener = std::make_shared<EagerListener>(kLineAt);
  pair.reader.pool().AddSyncListener(kHome, listener);
  if (!pair.reader.Sync().ok() || !pair.reader.GoOffline().ok()) return "the reader cannot go offline";
  fabric::Op op(pair.reader.client(), fabric::OpKind::kMaintenance);
  Task<Done> back = pair.reader.pool().ComeOnline(op);
  back.Start();
  cut.Advance(pair.run, back);
  pair.HoldReader(kTestLease / 2);
  bool in_force = false;
  const fabric::FarAddr word(kHome, kLineAt);
  if (!pair.writer.Try([&](fabric::Op& adding) { return AddOne(adding, word); }).ok()) return "cut off";
  pair.writer.pool().AfterGrace(kHome, [&in_force] { in_force = true; });
  for (int round = 0; round < 8; ++round) {
    if (!pair.writer.Maintain().ok()) return "the writer cannot sync";
  }
  const bool was_in_force = in_force;  // before the operation began
  if (!pair.Finish(back)) return "the reader cannot come back";
  const PoolClient::Pin pin = pair.reader.pool().Begin();
  return was_in_force && listener->known() == 0 ? "an operation acts on a word that is out of force" : "";
}

// A table on the other node, of which a listener of the reader adds to a counter.
struct DroppedTable {
  DroppedTable() : listener(std::make_shared<EagerListener>(kLineAt)) {}

  bool Begin() {
    if (!pair.Begin() || !pair.reader.Sync().ok()) return false;
    pair.reader.pool().AddSyncListener(kOther, listener);
    const Membership& home = pair.reader.pool().member(kHome);
    listener->ConfirmTable(home, home.control().catalog_changes);
    return true;
  }
  bool Announce() {
    const fabric::FarAddr changes(kHome, kCatalogChangesOffset);
    if (!pair.writer.Try([&](fabric::Op& op) { return AddOne(op, changes); }).ok()) return false;
    for (const fabric::NodeId node : {kHome, kOther})
      pair.writer.pool().AfterGrace(node, [this] { ++graces; });
    return true;
  }
  // The writer waits for grace, and uses the memory again.
  bool UseAgain() {
    for (int round = 0; round < 8 && graces < 2; ++round) {
      if (!pair.writer.Maintain().ok()) return false;
    }
    if (graces == 2) std::memset(pair.run.world().memory(kOther).data() + kLineAt, 0, kLine);
    return true;
  }
  std::string Verdict() {
    if (graces < 2 || pair.run.Word(kLineAt + 8, kOther) == 0) return "";
    return "a listener has added to memory that was used again";
  }

  Pair pair;
  std::shared_ptr<EagerListener> listener;
  int graces = 0;
};

std::string DropWhileAClientGoesOffline(Cut& cut) {
  DroppedTable table;
  if (!table.Begin() || !table.Announce()) return "a client cannot join";
  fabric::Op op(table.pair.reader.client(), fabric::OpKind::kMaintenance);
  Task<bool> away = table.pair.reader.pool().GoOffline(op);
  away.Start();
  cut.Advance(table.pair.run, away);
  table.pair.HoldReader(kTestLease / 2);
  if (!table.UseAgain() || !table.pair.Finish(away)) return "a client is cut off";
  return table.Verdict();
}

std::string DropWhileAClientSyncs(Cut& cut) {
  DroppedTable table;
  if (!table.Begin() || !table.Announce()) return "a client cannot join";
  // The reader hears of the drop, and does not validate its table.
  if (!table.pair.writer.Maintain().ok() || !table.pair.reader.Sync().ok()) return "a client is cut off";
  fabric::Op op(table.pair.reader.client(), fabric::OpKind::kMaintenance);
  Task<Done> sync = table.pair.reader.pool().Sync(op, /*raise=*/false);
  sync.Start();
  cut.Advance(table.pair.run, sync);
  table.pair.run.world().Hold(table.pair.reader.client().id(), kOther, kTestLease / 2);
  if (!table.UseAgain() || !table.pair.Finish(sync)) return "a client is cut off";
  return table.Verdict();
}

}  // namespace

std::string AnAnnouncementIsMadeWhileAClientComesBack() { return ForEveryCut(AnnounceWhileAClientComesBack); }
std::string ATableIsDroppedWhileAClientGoesOffline() { return ForEveryCut(DropWhileAClientGoesOffline); }
std::string ATableIsDroppedWhileAClientSyncs() { return ForEveryCut(DropWhileAClientSyncs); }

std::string ATableIsDroppedWhileAClientIsOffline() {
  DroppedTable table;
  if (!table.Begin() || !table.pair.reader.GoOffline().ok()) return "a client cannot join";
  if (!table.Announce() || !table.UseAgain()) return "a client is cut off";
  if (table.graces < 2) return "a client that is offline holds a drop up";
  if (!table.pair.reader.ComeOnline().ok()) return "the reader cannot come back";
  return table.Verdict();
}

// ---- off/4 -------------------------------------------------------------------------------------------

namespace {

std::string AnswerALookLate(Cut& cut) {
  Pair pair;
  if (!pair.Begin() || !pair.writer.Publish(1).ok() || !pair.writer.Unlink(1).ok()) return "nothing is there";
  if (!pair.reader.GoOffline().ok() || !pair.writer.GoOffline().ok()) return "a client cannot go offline";
  fabric::Op op(pair.writer.client(), fabric::OpKind::kMaintenance);
  Task<Done> look = pair.writer.pool().KeepUp(op);  // it has something to give back
  look.Start();
  cut.Advance(pair.run, look);
  for (const fabric::NodeId node : {kHome, kOther})
    pair.run.world().Hold(pair.writer.client().id(), node, kTestLease / 2);
  if (!pair.reader.ComeOnline().ok()) return "the reader cannot come back";
  const PoolClient::Pin pin = pair.reader.pool().Begin();
  const uint64_t block = pair.writer.BlockOf(0);
  if (!pair.writer.ComeOnline().ok() || !pair.writer.Unlink(0).ok()) return "the writer cannot come back";
  for (int sync = 0; sync < 3; ++sync) {
    if (!pair.writer.Sync(/*raise=*/true).ok()) return "the writer cannot sync";
  }
  if (!pair.Finish(look)) return "the look fails";
  for (size_t root = 2; root < ManualClient::kRoots; ++root) {
    if (!pair.writer.Publish(root).ok()) return "there is no memory";
    if (pair.writer.BlockOf(root) == block) return kUsedAgain;
  }
  return "";
}

}  // namespace

std::string ALookIsAnsweredLate() { return ForEveryCut(AnswerALookLate); }

// ---- off/5, off/6 ------------------------------------------------------------------------------------

std::string ABlockIsRetiredAfterAReturn() {
  PoolRun run(PoolCalm());
  ManualClient dead(run);
  ManualClient owner(run);
  ManualClient retirer(run);
  for (ManualClient* client : {&dead, &owner, &retirer}) {
    if (!client->Join().ok()) return "a client cannot join";
  }
  retirer.pool().set_walk({});
  retirer.set_births(ManualClient::Births::kPublished);
  if (!owner.Publish(0).ok() || !owner.Publish(1).ok()) return "nothing is there";
  if (!retirer.GoOffline().ok() || !retirer.ComeOnline().ok()) return "a client cannot come back";
  if (!retirer.Unlink(0).ok()) return "nothing is there";
  dead.Die();
  for (int round = 0; round < 24; ++round) {
    fabric::Op op(owner.client(), fabric::OpKind::kMaintenance);
    Task<Done> maintain = owner.pool().Maintain(op);
    maintain.Start();
    for (int step = 0; !maintain.done(); ++step) {
      // It syncs, and gives back late.
      const Result<Done> went_on = step < 24 ? retirer.Sync() : retirer.Maintain();
      if (!went_on.ok()) return "the retirer cannot sync";
      retirer.Wait(kTestLease / 16);
    }
    if (!maintain.TakeResult().ok() || !retirer.Sync().ok()) return "a client cannot sync";
    owner.Wait(kTestLease / 16);
  }
  const uint64_t swept = owner.pool().allocator(ManualClient::kNode).stats().blocks_swept;
  return swept == 0 ? "" : "a sweep frees what another client is about to give back";
}

std::string AClientGivesUpItsChunksAfterADeath() {
  PoolRun run(PoolCalm());
  ManualClient dead(run);
  ManualClient idle(run);
  ManualClient adopter(run);
  for (ManualClient* client : {&dead, &idle, &adopter}) {
    if (!client->Join().ok()) return "a client cannot join";
  }
  const uint32_t dead_slot = dead.self().slot();
  if (!idle.Publish(0).ok() || !idle.Publish(1).ok() || !dead.Unlink(0).ok()) return "nothing is there";
  dead.Die();  // with what it had to give back
  if (!idle.GoOffline().ok()) return "a client cannot go offline";
  for (int i = 0; i < 7; ++i) {
    if (!adopter.Maintain().ok() || !idle.Sync().ok()) return "a client cannot sync";
    adopter.Wait(kTestLease / 8);
  }
  adopter.Wait(kTestLease / 4);  // the idle one beats no more, and so does not hear of the death
  for (int i = 0; i < 8 && run.SlotWord(dead_slot).state() != ClientState::kFree; ++i) {
    if (!adopter.Maintain().ok()) return "the adopter cannot sync";
  }
  if (run.SlotWord(dead_slot).state() != ClientState::kFree) return "the dead client still has its slot";
  const Result<bool> disowned = idle.Try([&](fabric::Op& op) { return idle.pool().Disown(op); });
  if (!disowned.ok()) return "the idle client is cut off";
  if (!idle.ComeOnline().ok() || !adopter.Unlink(1).ok()) return "a client cannot come back";
  for (int i = 0; i < 4; ++i) {
    fabric::Op op(idle.client(), fabric::OpKind::kMaintenance);
    Task<Done> maintain = idle.pool().Maintain(op);  // which sweeps, if it has heard of the death
    maintain.Start();
    while (!maintain.done()) {
      if (!adopter.Maintain().ok()) return "the adopter cannot sync";
      adopter.Wait(kTestLease / 16);
    }
    if (!maintain.TakeResult().ok()) return "the idle client cannot sync";
  }
  if (!idle.Leave().ok() || !adopter.Leave().ok()) return "a client cannot leave";
  return ChunksInUse(run) == 0 ? "" : "a block is lost";
}

}  // namespace farside::pool
