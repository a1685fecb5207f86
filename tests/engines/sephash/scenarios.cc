#include "tests/engines/sephash/scenarios.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <set>
#include <string>

#include "base/random.h"
#include "index/sephash/segment_reader.h"
#include "pool/memory/reach.h"

namespace farside::index::sephash {
namespace {

constexpr auto kNap = std::chrono::milliseconds(4);

// A value whose block has four lines, so that blocks of other values are never at the same place.
std::string FourLines(char fill) { return std::string(200, fill); }

// Puts of new keys, or of the same few again.
std::vector<Request> Puts(size_t count, size_t keys, const std::string& value) {
  std::vector<Request> puts;
  for (size_t i = 0; i < count; ++i)
    puts.push_back(Put(fmt::format("o{}", i % keys), fmt::format("{}{}", value, i)));
  return puts;
}

}  // namespace

// ---- changes ---------------------------------------------------------------------------------------------

std::string ChangerFallsAsleep(const Nap& nap) {
  bool more = true;
  for (uint64_t steps = 0; more; ++steps) {
    Play play(nap.table);
    Member& other = play.Enter();
    Member& sleeper = play.Enter();
    play.DoAll(other, nap.before);
    play.Do(sleeper, Get(nap.change.key));
    play.Begin(sleeper, nap.change, steps);
    more = !play.over();
    play.world.fabric.Sleep(sleeper.client().id(), kNap);
    play.DoAll(other, nap.meanwhile);
    const std::string problem = play.End();
    if (!problem.empty()) return fmt::format("asleep after {} steps: {}", steps, problem);
  }
  return "";
}

std::string FilterIsTrusted() {
  return ChangerFallsAsleep({{{"entries", "4"}, {"main", "64"}},
                             {Put("o", "old")},
                             Put("k", "new"),
                             {Insert("k", "of other"), Get("k")}});
}

std::string ChangersFallAsleep() {
  const std::vector<Request> before = {Put("k", "old"), Put("o0", "old"), Put("o1", "old")};
  const OptionMap splits = {{"entries", "2"}, {"main", "1"}, {"depth_bits", "1"}};
  for (const Request& change : {Put("k", "new"), Insert("j", "new"), Update("k", "new"), Delete("k")}) {
    std::vector<std::vector<Request>> meanwhile = {Puts(1, 4, "of other "), Puts(4, 4, "of other "),
                                                   Puts(17, 4, "of other ")};
    for (std::vector<Request>& requests : meanwhile) requests.push_back(Put(change.key, "of other"));
    meanwhile.push_back({Delete(change.key), Put("o0", "of other"), Put("o1", "of other")});
    for (const std::vector<Request>& some : meanwhile) {
      const std::string problem = ChangerFallsAsleep({SmallRounds(), before, change, some});
      if (!problem.empty()) return problem;
    }
    std::vector<Request> many = Puts(8, 8, "of other ");
    many.push_back(Put(change.key, "of other"));
    const std::string problem = ChangerFallsAsleep({splits, before, change, many});
    if (!problem.empty()) return "splits: " + problem;
  }
  return "";
}

// Round 1 has the key twice, so that the first block of it is dropped. In round 2 the sleeper sees the word
// of round 1 in slot 0. When round 9 begins, whose epoch is that of round 1, the key is put again, and its
// block has the size of the one that was dropped.
std::string WordOfASlotComesBack(bool deletes) {
  bool more = true;
  for (uint64_t steps = 0; more; ++steps) {
    Play play(SmallRounds());
    Member& writer = play.Enter();
    Member& sleeper = play.Enter();
    if (deletes) {
      play.DoAll(writer, {Put("k", FourLines('a')), Put("o", "0")});
      for (int round = 2; round <= 8; ++round) play.DoAll(writer, {Put("o", "1"), Put("p", "1")});
      play.DoAll(writer, {Delete("k"), Put("o", "2")});
    } else {
      play.DoAll(writer, {Put("k", FourLines('a')), Put("k", "small")});
    }
    const uint32_t epoch = play.image().MetaAt(0).epoch();
    const Entry word = play.image().EntryIn(0, 0);
    if (word.epoch() != EpochBefore(epoch)) return "the round is not over";
    play.Do(sleeper, Get("k"));
    LetMemoryGo(play.world);
    play.Begin(sleeper, Put("s", "of sleeper"), steps);
    more = !play.over();
    play.world.fabric.Sleep(sleeper.client().id(), kNap);
    for (uint32_t round = 1; round < kEpochs; ++round) {
      const bool puts_again = deletes && round == 2;
      play.DoAll(writer, {Put(puts_again ? "k" : "o", puts_again ? FourLines('b') : "3"), Put("p", "3")});
    }
    play.Do(writer, deletes ? Delete("k") : Put("k", FourLines('c')));
    if (steps == 0 && play.image().EntryIn(0, 0).tag() != word.tag()) return "the key is in another slot";
    const std::string problem = play.End();
    if (!problem.empty()) return fmt::format("asleep after {} steps: {}", steps, problem);
  }
  return "";
}

// A key that comes and goes has its segment closed: the first round ends with padding, the second one is
// nothing else. Eight rounds later the epoch is the same.
std::string PaddingOfASlotComesBack() {
  bool more = true;
  for (uint64_t steps = 0; more; ++steps) {
    Play play({{"entries", "3"}, {"main", "64"}});
    Member& writer = play.Enter();
    Member& sleeper = play.Enter();
    const auto come_and_go = [&] {
      play.DoAll(writer, {Put("j", "0"), Delete("j")});
      // An epoch passes, since something waits for it: it is raised by one round and known by the next.
      writer.pool().AfterGrace(fabric::NodeId{0}, [] {});
      for (int round = 0; round < 2; ++round) writer.Now(writer.Maintain());
      play.Do(writer, Get("j"));
    };
    const auto pads = [&] {
      const Entry entry = play.image().EntryIn(0, 0);
      return entry.is_padding() && entry.epoch() == EpochBefore(play.image().MetaAt(0).epoch());
    };
    come_and_go();
    if (!pads()) return "there is no padding";
    const uint32_t epoch = play.image().MetaAt(0).epoch();
    play.Do(sleeper, Get("k"));
    play.Begin(sleeper, Insert("k", "of sleeper"), steps);
    more = !play.over();
    play.world.fabric.Sleep(sleeper.client().id(), kNap);
    for (uint32_t round = 0; round < kEpochs; round += 2) come_and_go();
    if (steps == 0 && (!pads() || play.image().MetaAt(0).epoch() != epoch))
      return "there is no padding when the epoch has come again";
    play.Finish();
    play.Do(writer, Get("k"));
    const std::string problem = play.End();
    if (!problem.empty()) return fmt::format("asleep after {} steps: {}", steps, problem);
  }
  return "";
}

namespace {

class MarkedBlocks : public pool::Reach {
 public:
  void Mark(fabric::FarAddr block, uint64_t /*bytes*/) override { marked_.insert(block.offset); }
  bool Has(uint64_t offset) const { return marked_.contains(offset); }

 private:
  std::set<uint64_t> marked_;
};

// What slots name, and no client can reach.
std::string UnreachableSlot(const Image& image, const MarkedBlocks& marked, const Shape& shape) {
  for (size_t part = 0; part < kMostParts && image.root().parts[part] != 0; ++part) {
    for (uint64_t i = 0; i < shape.PartEntries(part); ++i) {
      const uint64_t suffix = shape.FirstOfPart(part) + i;
      if (image.SegmentAt(suffix) == 0) continue;
      for (uint64_t slot = 0; slot < shape.entries; ++slot) {
        const Entry entry = image.EntryIn(suffix, slot);
        if (entry == Entry() || entry.is_padding() || marked.Has(entry.offset())) continue;
        return fmt::format("slot {} of segment {:#x} names a block that cannot be reached", slot, suffix);
      }
    }
  }
  return "";
}

}  // namespace

std::string SlotsNameWhatCanBeReached(uint64_t seeds) {
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    const OptionMap table = {
        {"entries", "2"}, {"main", "1"}, {"segments", "2"}, {"depth_bits", seed % 2 == 0 ? "1" : "4"}};
    World world({.seed = seed});
    std::vector<std::unique_ptr<Member>> members;
    for (int i = 0; i < 3; ++i) members.push_back(std::make_unique<Member>(world, table));
    Member& watcher = *members[2];
    const Shape shape = watcher.options().shape;
    Random random(seed);
    for (int i = 0; i < 60; ++i) {
      Member& member = *members[random.Below(2)];
      const std::string key = fmt::format("k{}", random.Below(10));
      if (random.Below(3) == 0) {
        member.Now(member.Delete(key));
      } else {
        member.Now(member.Put(key, std::to_string(i)));
      }
      if (random.Below(8) == 0) LetMemoryGo(world);
      MarkedBlocks marked;
      watcher.Now(watcher.WalkTable(marked));
      const std::string named = UnreachableSlot(Image(world, shape), marked, shape);
      if (!named.empty()) return fmt::format("seed {}, change {}: {}", seed, i, named);
      if (!world.problem.empty()) return fmt::format("seed {}, change {}: {}", seed, i, world.problem);
    }
    const uint64_t splits = members[0]->merge_counts().splits + members[1]->merge_counts().splits;
    if (splits < 2) return fmt::format("seed {}: {} splits", seed, splits);
    while (members.size() > 1) members.pop_back();
    members[0]->Audit();
    if (!world.problem.empty()) return fmt::format("seed {}: {}", seed, world.problem);
  }
  return "";
}

std::string TwoInsertAKey(uint64_t seeds) {
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    Play play(seed % 2 == 0 ? SmallRounds() : OptionMap{{"entries", "3"}, {"main", "64"}},
              {.seed = seed, .chaos = fabric::sim::Chaos::ForSeed(seed, /*faults=*/false)});
    std::vector<Member*> members = {&play.Enter(), &play.Enter(), &play.Enter()};
    for (Member* member : members) play.Do(*member, Get("k"));
    for (size_t i = 0; i < members.size(); ++i) play.Begin(*members[i], Insert("k", fmt::format("of {}", i)));
    const std::string problem = play.End();
    if (!problem.empty()) return fmt::format("seed {}: {}", seed, problem);
  }
  return "";
}

// ---- searches --------------------------------------------------------------------------------------------

namespace {

// A table in which `reader` remembers the first MainSegment, which has other keys; then others merge the key
// "k" and go on, until the next merge takes the memory of that first MainSegment.
class RememberedMain {
 public:
  explicit RememberedMain(const WorldOptions& options = {}) : play(SmallRounds(), options) {
    writer = &play.Enter();
    reader = &play.Enter();
    play.DoAll(*writer, {Put("a", "0"), Put("b", "0")});
    play.Do(*reader, Get("a"));
    main_ = play.image().MetaAt(0).main();
    play.DoAll(*writer, {Put("k", "0"), Put("c", "0")});
    LetMemoryGo(play.world);
  }
  // One round of other keys.
  std::vector<Request> Round() {
    ++rounds_;
    return {Put("c", fmt::format("{}", rounds_)), Put("d", fmt::format("{}", rounds_))};
  }
  bool is_back() const { return play.image().MetaAt(0).main() == main_; }

  Play play;
  Member* writer = nullptr;
  Member* reader = nullptr;

 private:
  uint64_t main_ = 0;
  int rounds_ = 0;
};

constexpr int kMostRounds = 30;

// Rounds until the first MainSegment's memory is used again.
int RoundsUntilBack() {
  RememberedMain table;
  for (int round = 1; round < kMostRounds; ++round) {
    table.play.DoAll(*table.writer, table.Round());
    if (table.is_back()) return round;
  }
  return kMostRounds;
}

}  // namespace

std::string MainComesBackAtItsAddress() {
  RememberedMain table;
  for (int round = 1; round < kMostRounds && !table.is_back(); ++round) {
    table.play.DoAll(*table.writer, table.Round());
  }
  if (!table.is_back()) return "the memory is not used again";
  table.play.Do(*table.reader, Get("k"));
  table.play.Do(*table.reader, Get("a"));
  return table.play.End();
}

std::string MainComesBackDuringASearch() {
  bool more = true;
  for (uint64_t steps = 0; more; ++steps) {
    RememberedMain table;
    table.play.Begin(*table.reader, Get("k"), steps);
    more = !table.play.over();
    table.play.world.fabric.Sleep(table.reader->client().id(), kNap);
    for (int round = 1; round < kMostRounds && !table.is_back(); ++round)
      table.play.DoAll(*table.writer, table.Round());
    if (!table.is_back()) return "the memory is not used again";
    const std::string problem = table.play.End();
    if (!problem.empty()) return fmt::format("asleep after {} steps: {}", steps, problem);
  }
  return "";
}

std::string MainComesBackWhereReadsHaveNoOrder(uint64_t seeds) {
  const int rounds = RoundsUntilBack();
  if (rounds == kMostRounds) return "the memory is not used again";
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    WorldOptions options{.seed = seed};
    options.chaos.tear = 512;
    options.chaos.ordered_reads = false;
    RememberedMain table(options);
    for (int round = 1; round < rounds; ++round) table.play.DoAll(*table.writer, table.Round());
    const std::vector<Request> last = table.Round();
    table.play.Do(*table.writer, last[0]);
    table.play.Begin(*table.writer, last[1], seed % 16);
    table.play.Begin(*table.reader, Get("k"));
    const std::string problem = table.play.End();
    if (!problem.empty()) return fmt::format("seed {}: {}", seed, problem);
  }
  return "";
}

std::string RememberedMainIsGone() {
  RememberedMain table;
  table.play.Do(*table.reader, Get("k"));
  table.play.DoAll(*table.writer, {Put("a", "1"), Delete("b")});
  for (const char* key : {"a", "b", "c", "k"}) table.play.Do(*table.reader, Get(key));
  return table.play.End();
}

// ---- looks -----------------------------------------------------------------------------------------------

std::string LooksMeetMerges(uint64_t seeds) {
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    WorldOptions options{.seed = seed, .chaos = fabric::sim::Chaos::ForSeed(seed, /*faults=*/false)};
    options.chaos.tear = 896;
    const std::string entries = seed % 2 == 0 ? "7" : "14";
    Play play({{"entries", entries}, {"main", "64"}, {"filter", seed % 4 < 2 ? "yes" : "no"}}, options);
    std::vector<Member*> members = {&play.Enter(), &play.Enter(), &play.Enter()};
    for (Member* member : members) play.Do(*member, Get("k0"));
    const size_t almost = seed % 2 == 0 ? 5 : 12;
    play.DoAll(*members[0], Puts(almost, 3, "old "));
    for (int round = 0; round < 4; ++round) {
      play.Begin(*members[0], Put(fmt::format("o{}", round % 3), fmt::format("a{}", round)));
      play.Begin(*members[1], Insert(fmt::format("k{}", round % 2), fmt::format("b{}", round)), seed % 5);
      play.Begin(*members[1], Put(fmt::format("n{}", round), "b"));
      play.Begin(*members[2], Insert(fmt::format("k{}", round % 2), fmt::format("c{}", round)), seed % 7);
      play.Begin(*members[2], Get(fmt::format("o{}", round % 3)));
      play.Finish();
    }
    const std::string problem = play.End();
    if (!problem.empty()) return fmt::format("seed {}: {}", seed, problem);
  }
  return "";
}

namespace {

// fabric/21 does not bound the trips of the client that reads, but chance brings no more than a few of them
// into one READ. So the bytes of a CurSegment of two lines are put there by hand: before the READ those that
// it had some puts ago, and those of now when one of its lines was sampled.
std::string LookMeetsPuts(int before, int meanwhile, uint64_t own_commits) {
  constexpr uint32_t kEntries = 14;
  WorldOptions options;
  options.chaos.tear = fabric::sim::kOneIn;
  for (options.seed = 1; options.seed <= 8; ++options.seed) {
    Play play({{"entries", std::to_string(kEntries)}, {"main", "64"}}, options);
    Member& member = play.Enter();
    const std::vector<Request> puts = Puts(static_cast<size_t>(before + meanwhile), 5, "");
    for (int i = 0; i < before; ++i) play.Do(member, puts[i]);
    const uint64_t at = play.image().SegmentAt(0);
    const std::span<std::byte> bytes = play.world.memory().subspan(at, SegmentBytes(kEntries));
    const std::vector<std::byte> then(bytes.begin(), bytes.end());
    for (int i = before; i < before + meanwhile; ++i) play.Do(member, puts[i]);
    const std::vector<std::byte> now(bytes.begin(), bytes.end());

    SegmentReader reader(member.options(), member.pool());
    Segment segment(fabric::FarAddr(fabric::NodeId{0}, at), 0, 0);
    Look look;
    fabric::Op op(member.client(), fabric::OpKind::kMaintenance);
    std::copy(then.begin(), then.end(), bytes.begin());
    Task<Done> reading = reader.ReadLook(op, segment, kEntries, look);
    reading.Start();
    play.world.fabric.Step();
    std::copy(now.begin(), now.end(), bytes.begin());
    segment.commits += own_commits;
    play.world.Drive([&] { return reading.done(); });
    const Result<Done> read = reading.TakeResult();
    if (!read.ok()) return read.error().ToString();
    const auto image = std::as_bytes(std::span(&look.image, 1)).first(now.size());
    if (std::equal(now.begin(), now.end(), image.begin())) continue;
    if (std::equal(then.begin(), then.end(), image.begin())) continue;
    return fmt::format("seed {}: the look has entries of different rounds", options.seed);
  }
  return "";
}

}  // namespace

std::string LookMeetsOwnMerges() { return LookMeetsPuts(17, 14 * static_cast<int>(kEpochs), kEpochs); }
// The round is full before, and its merge is counted as one of another client.
std::string LookMeetsOwnAppends() { return LookMeetsPuts(13, 1 + 8, 0); }

std::string InsertMeetsOwnPuts(uint64_t seeds) {
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    WorldOptions options{.seed = seed};
    options.chaos.tear = 256;
    Play play({{"entries", "14"}, {"main", "64"}}, options);
    Member& one = play.Enter();
    Member& other = play.Enter();
    for (Member* member : {&one, &other}) play.Do(*member, Get("k"));
    play.DoAll(other, Puts(5, 5, "old"));  // the next slot is the last one of its line
    play.Begin(other, Insert("k", "of other"), 5 + seed % 4);
    play.Begin(one, Insert("k", "of one"));
    for (int i = 0; i < 8; ++i) play.Begin(one, Put(fmt::format("p{}", i), "of one"));
    const std::string problem = play.End();
    if (!problem.empty()) return fmt::format("seed {}: {}", seed, problem);
  }
  return "";
}

// ---- keys, cursors ---------------------------------------------------------------------------------------

std::string KeysWithTheSameTag() {
  const std::vector<std::string> keys = KeysWithOneTag(3);
  for (const OptionMap& table : {SmallRounds(), OptionMap{{"entries", "5"}, {"main", "1"}}}) {
    Play play(table);
    const auto tag = [&](const std::string& key) { return TagOf(HashOf(key), play.options().shape, 0); };
    if (tag(keys[0]) != tag(keys[1]) || tag(keys[0]) != tag(keys[2])) return "the keys have different tags";
    Member& one = play.Enter();
    Member& other = play.Enter();
    for (const std::string& key : keys) play.Do(one, Insert(key, "of " + key));
    for (int round = 0; round < 4; ++round) {
      for (const std::string& key : keys) {
        play.Do(other, Get(key));
        play.Do(round % 2 == 0 ? one : other, Update(key, fmt::format("{} of {}", round, key)));
      }
      play.DoAll(one, {Delete(keys[round % 3]), Get(keys[round % 3]), Insert(keys[round % 3], "again")});
      play.DoAll(other, {Insert(keys[(round + 1) % 3], "not"), Delete(keys[(round + 2) % 3])});
    }
    const std::string problem = play.End();
    if (!problem.empty()) return problem;
  }
  return "";
}

std::string CursorMeetsSplits() {
  const OptionMap table = {{"entries", "4"}, {"main", "2"}, {"depth_bits", "2"}};
  for (int splits_at = 0; splits_at < 12; ++splits_at) {
    World world;
    Member reader(world, table);
    Member writer(world, table);
    std::set<std::string> missing;
    for (int i = 0; i < 40; ++i) {
      missing.insert(fmt::format("k{}", i));
      writer.Now(writer.Put(fmt::format("k{}", i), "old"));
      if (i == 8) reader.Now(reader.Get("k0"));
    }
    Cursor cursor;
    for (int pages = 0; pages < 1000; ++pages) {
      if (pages == splits_at) {
        for (int i = 0; i < 80; ++i) writer.Now(writer.Put(fmt::format("n{}", i), "new"));
      }
      const std::vector<Record> page = reader.Now(reader.Page(cursor));
      if (page.empty()) break;
      for (const Record& record : page) missing.erase(record.key);
    }
    if (!world.problem.empty()) return world.problem;
    if (!missing.empty())
      return fmt::format("the cursor missed {} keys, such as {}", missing.size(), *missing.begin());
  }
  return "";
}

}  // namespace farside::index::sephash
