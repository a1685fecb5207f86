#include "tests/engines/shard/remembered_scenarios.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace farside::index::shard {

namespace {

Member& EnterWithCache(Stage& stage) { return stage.EnterWith({{"max_load", "0.95"}, {"cache", "16"}}); }

// Eight keys whose entries in level 2 look the same but for where their blocks are.
std::vector<std::string> KeysOfOneTag() {
  const auto tag = [](const KeyHash& hash) { return TagOf({}, hash.number(Candidate::kFirstChoice), 1); };
  const uint64_t common = tag(HashOf("k0"));
  std::vector<std::string> keys;
  for (int nth = 0; keys.size() < kSlotsPerLine + 1; ++nth) {
    const std::string key = fmt::format("k{}", nth);
    if (tag(HashOf(key)) == common) keys.push_back(key);
  }
  return keys;
}

}  // namespace

// The bucket is full, and the keys stand in one line of level 2, whose last slot a search reaches after a
// READ of each of the other blocks: long after it has read the line.
std::string RememberedWordNamesAnotherKey(Remembered remembered) {
  static const std::vector<std::string> keys = KeysOfOneTag();
  Stage stage({{"slots", "1"}, {"overflow_slots", "8"}});
  Member& client = EnterWithCache(stage);
  Member& other = EnterWithCache(stage);
  ExpectedValues expected;
  for (size_t i = 0; i < kSlotsPerLine; ++i) expected.Put(stage, other, keys[i], "old");
  const std::string& key = keys[kSlotsPerLine - 1];
  const std::string& successor = keys[kSlotsPerLine];
  for (Member* member : {&client, &other}) stage.Learn(*member);
  expected.Put(stage, other, key, "older");  // so that it can delete it in one trip
  const uint64_t slot_at = stage.SegmentBase(0) + stage.shape().bucket_bytes() + kLinkSlot * sizeof(Entry);
  const Entry entry(stage.Word(slot_at));
  if (!entry.has_block()) return "the key is not in the last slot of the line";

  auto get = std::make_unique<Task<std::string>>(client.Get(key));
  get->Start();
  if (remembered == Remembered::kLongAgo) stage.world.Drive([&] { return get->done(); });
  // Until it has read the line.
  for (int trip = 0; trip < 3 && !get->done(); ++trip) {
    const uint64_t posted = stage.world.fabric.verbs_posted();
    stage.world.Drive([&] { return get->done() || stage.world.fabric.verbs_posted() > posted; });
  }
  // What comes next is over before the search goes on, however long its READs take.
  if (!get->done()) stage.world.fabric.Sleep(client.client().id(), std::chrono::milliseconds(4));
  expected.Delete(stage, other, key);
  other.Now(other.Sync());  // the stamp of the block
  client.Now(client.Sync(/*raise=*/true));
  const bool in_flight = !get->done();
  if (in_flight != (remembered == Remembered::kDuringGrace))
    return "the search takes another time than it should";
  stage.world.Drive([&] { return get->done(); });
  get.reset();
  for (int round = 0; round < 2; ++round) {
    for (Member* member : {&client, &other}) member->Now(member->Sync());
    stage.SyncGrower();
  }
  // The client must not learn a newer epoch.
  for (int round = 0; round < 4; ++round) {
    other.Now(other.Maintain());
    stage.SyncGrower();
  }
  expected.Put(stage, other, keys[0], "new");  // takes the block that the key had first
  expected.Put(stage, other, successor, "successor");
  if (stage.Word(slot_at) != entry.word()) return "the word is not the same";

  expected.Put(stage, client, key, "new");
  expected.CheckAll(stage, other);
  expected.CheckList(stage, other);
  return stage.End();
}

std::string RememberedUnitIsSplit(Meets meets) {
  bool more = true;
  for (uint64_t steps = 0; more; ++steps) {
    Stage stage({{"slots", "8"}, {"overflow_slots", "2"}});
    Member& client = EnterWithCache(stage);
    Member& splitter = stage.Enter();
    stage.Learn(client);
    stage.Learn(splitter);
    ExpectedValues expected;
    for (const bool moves : {false, true}) {
      for (int i = 0; i < 2; ++i) expected.Put(stage, splitter, KeyThat(moves, i), "old");
    }
    expected.CheckAll(stage, client);  // it remembers them
    stage.Announce({&client, &splitter});
    stage.Activate();
    stage.Learn(splitter);
    if (meets == Meets::kNewVersion) stage.Learn(client);
    if (stage.VersionOf(0) != 1) return "there is nothing to split";
    std::optional<Task<PutOutcome>> split(splitter.Put(KeyThat(false, 2), "splits"));
    split->Start();
    for (uint64_t step = 0; step < steps && !split->done(); ++step) stage.world.fabric.Step();
    more = !split->done();
    stage.world.fabric.Sleep(splitter.client().id(), std::chrono::milliseconds(4));
    for (const bool moves : {false, true}) {
      expected.Put(stage, client, KeyThat(moves, 0), "new");
      expected.Delete(stage, client, KeyThat(moves, 1));
    }
    stage.world.Drive([&] { return split->done(); });
    if (!split->TakeResult().ok()) return "the splitter gave up";
    split.reset();
    expected.Holds(KeyThat(false, 2), "splits");
    for (Member* member : {&client, &splitter}) expected.CheckAll(stage, *member);
    expected.CheckList(stage, splitter);
    const std::string problem = stage.End();
    if (!problem.empty()) return fmt::format("after {} steps of the split: {}", steps, problem);
  }
  return "";
}

std::string RememberedEntryIsReplaced() {
  Stage stage({{"slots", "8"}, {"overflow_slots", "2"}});
  Member& client = EnterWithCache(stage);
  Member& other = stage.Enter();
  stage.Learn(client);
  stage.Learn(other);
  ExpectedValues expected;
  const auto begin = [&](const std::string& key, bool then_absent) {
    expected.Put(stage, other, key, "old");
    expected.Check(stage, client, key);  // it remembers the entry
    if (then_absent) return expected.Delete(stage, other, key);
    expected.Put(stage, other, key, "other");
  };
  const auto told = [&](const char* what, bool is, bool should_be) {
    if (is != should_be) stage.world.Complain(fmt::format("{} says {}", what, is));
  };
  for (const bool absent : {false, true}) {
    begin("put", absent);
    told("a put", client.Now(client.Put("put", "new")) == PutOutcome::kReplaced, !absent);
    expected.Holds("put", "new");
    begin("update", absent);
    told("an update", client.Now(client.Update("update", "new")), !absent);
    expected.Holds("update", absent ? "absent" : "new");
    begin("insert", absent);
    told("an insert", client.Now(client.Insert("insert", "new")), absent);
    expected.Holds("insert", absent ? "new" : "other");
    begin("delete", absent);
    told("a delete", client.Now(client.Delete("delete")), !absent);
    expected.Holds("delete", "absent");
    begin("swap", absent);
    told("a compare-and-set", client.Now(client.CompareAndSet("swap", "old", "new")), false);
    told("a compare-and-set", client.Now(client.CompareAndSet("swap", "other", "new")), !absent);
    expected.Holds("swap", absent ? "absent" : "new");
    expected.CheckAll(stage, client);
    expected.CheckAll(stage, other);
    expected.CheckList(stage, other);
  }
  return stage.End();
}

namespace {

std::string Bytes(uint64_t number) {
  std::string bytes(8, ' ');
  StoreU64(reinterpret_cast<std::byte*>(bytes.data()), number);
  return bytes;
}

constexpr uint64_t kOld = 100;
constexpr uint64_t kLost = 200;   // what the put stores
constexpr uint64_t kOther = 300;  // what its rival stores, if it is no counter

// What the key holds afterwards, unless the put may lose.
uint64_t ChangeByRival(Member& member, Against rival, const std::string& key, const std::string& overflows) {
  switch (rival) {
    case Against::kPut: member.Now(member.Put(key, Bytes(kOther))); break;
    case Against::kIncrement: return member.Now(member.Increment(key, 1)) == kLost + 1 ? kLost + 1 : kLost;
    case Against::kCompareAndSet: member.Now(member.CompareAndSet(key, Bytes(kOld), Bytes(kOther))); break;
    case Against::kOverflow: member.Now(member.Put(overflows, "in level 2")); break;
  }
  return kLost;
}

// `steps`: of the put, before its rival begins; nothing: the rival has ended before.
std::string PutMeetsARivalAfter(Against rival, bool remembers, std::optional<uint64_t> steps, bool& more) {
  Stage stage({{"slots", "8"}, {"overflow_slots", "2"}});
  Member& client = remembers ? EnterWithCache(stage) : stage.Enter();
  Member& other = stage.Enter();
  for (Member* member : {&client, &other}) stage.Learn(*member);
  std::vector<std::string> keys;
  for (int i = 0; i < 8; ++i) keys.push_back(fmt::format("k{}", i));
  const std::string& key = keys[kOverflowSlot - 1];  // behind the seed
  for (int i = 0; i < 7; ++i) other.Now(other.Put(keys[i], Bytes(kOld)));
  other.Now(other.Put(key, Bytes(kOld)));  // as an overwrite
  client.Now(client.Get(key));
  const uint64_t trips = client.tally(fabric::OpKind::kUpdate).end_to_end_trips;
  uint64_t last = kLost;
  if (!steps.has_value()) last = ChangeByRival(other, rival, key, keys[7]);
  std::vector<Task<PutOutcome>> puts;
  puts.push_back(client.Put(key, Bytes(kLost)));
  puts[0].Start();
  for (uint64_t step = 0; step < steps.value_or(0) && !puts[0].done(); ++step) stage.world.fabric.Step();
  more = !puts[0].done();
  if (steps.has_value()) {
    stage.world.fabric.Sleep(client.client().id(), std::chrono::milliseconds(4));
    last = ChangeByRival(other, rival, key, keys[7]);
  }
  stage.world.Drive([&] { return puts[0].done(); });
  const Result<PutOutcome> outcome = puts[0].TakeResult();
  puts.clear();
  if (!outcome.ok() || *outcome != PutOutcome::kReplaced) return "the put does not say that it has replaced";
  const std::string found = other.Now(other.Get(key));
  const bool may_lose = rival == Against::kPut && steps.has_value();
  if (found != Bytes(last) && !(may_lose && found == Bytes(kOther)))
    stage.world.Complain(fmt::format("the key holds {}", LoadU64(AsBytes(found).data())));
  // A look, a CAS that has lost, and a look at what it has lost to.
  const uint64_t most = 4;
  if (may_lose && client.tally(fabric::OpKind::kUpdate).end_to_end_trips - trips > most)
    stage.world.Complain("a put that has lost goes on");
  return stage.End();
}

}  // namespace

std::string PutMeetsARival(Against rival, bool remembers) {
  bool more = true;
  std::string problem = PutMeetsARivalAfter(rival, remembers, std::nullopt, more);
  if (!problem.empty()) return "before: " + problem;
  more = true;
  for (uint64_t steps = 0; more; ++steps) {
    problem = PutMeetsARivalAfter(rival, remembers, steps, more);
    if (!problem.empty()) return fmt::format("after {} steps of the put: {}", steps, problem);
  }
  return "";
}

}  // namespace farside::index::shard
