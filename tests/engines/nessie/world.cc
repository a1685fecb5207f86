#include "tests/engines/nessie/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <set>
#include <string>

#include "check/linearizability.h"

namespace farside::index::nessie {

std::string NameOf(const std::string& what) {
  std::string name;
  bool begins = true;
  for (const char c : what) {
    const bool is_letter = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (is_letter) name += begins ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    begins = !is_letter;
  }
  return name;
}

// ---- keys for scenarios ----------------------------------------------------------------------------------

std::string KeyFor(const std::function<bool(const KeyHash&)>& fits, int nth) {
  for (int i = 0;; ++i) {
    std::string key = fmt::format("k{}", i);
    if (fits(HashOf(key)) && nth-- == 0) return key;
  }
}

std::string KeyAt(const Places& places, int nth) {
  return KeyFor(
      [&](const KeyHash& hash) {
        return hash.SlotOf(kFourSlots, Candidate::kPrimary, places.version) == places.primary &&
               hash.SlotOf(kFourSlots, Candidate::kSecondary, places.version) == places.secondary;
      },
      nth);
}

std::string KeyWithTheTagOf(const std::string& key) {
  const KeyHash other = HashOf(key);
  const auto slot = [](const KeyHash& hash, Candidate candidate) {
    return hash.SlotOf(kFourSlots, candidate, 1);
  };
  return KeyFor([&](const KeyHash& hash) {
    return hash.tag() == other.tag() && hash.hash() != other.hash() &&
           slot(hash, Candidate::kPrimary) == slot(other, Candidate::kPrimary);
  });
}

// ---- histories -------------------------------------------------------------------------------------------

Play::Play(const OptionMap& own, const WorldOptions& options)
    : world(options),
      table_{{"slots", "4"}, {"max_load", "1"}, {"head_start", "0"}, {"burst", "0"}, {"sweep", "0"}},
      shape_(kFourSlots) {
  for (const auto& [key, value] : own) table_[key] = value;
}

Member& Play::Enter(const OptionMap& own) {
  OptionMap options = table_;
  for (const auto& [key, value] : own) options[key] = value;
  members_.push_back(std::make_unique<Member>(world, options));
  numbers_.insert_or_assign(members_.back().get(), ++last_number_);
  Member& member = *members_.back();
  // An operation that learns while it waits that the table was made has to look anew.
  member.Now(member.Maintain());
  member.Now(member.Get("looks"));
  return member;
}

void Play::Kill(Member& member) {
  dead_ = true;
  if (!member.crashed()) world.fabric.Crash(member.client().id());
  upkeep_.erase(&member);
  std::erase_if(tasks_, [&](const auto& task) { return task.first == &member; });
  std::erase_if(members_, [&](const auto& known) { return known.get() == &member; });
}

void Play::Do(Member& member, const Request& request) {
  Begin(member, request);
  FinishOf(member);
}

// A client that has nothing to do syncs now and then, as those of users do: others may wait for it, because
// what a dead client has left is adopted after a grace period.
void Play::Drive(const std::function<bool()>& over) {
  while (!over()) {
    if (world.fabric.Now() - last_upkeep_ >= std::chrono::milliseconds(1)) {
      last_upkeep_ = world.fabric.Now();
      for (const auto& member : members_) {
        std::optional<Task<Done>>& upkeep = upkeep_[member.get()];
        if (member->crashed() || !OverOf(*member) || (upkeep.has_value() && !upkeep->done())) continue;
        upkeep.emplace(member->Maintain());
        upkeep->Start();
      }
    }
    if (!world.fabric.Step()) return;
  }
}

Task<Done> Play::RecordAll(Member& member, std::vector<Request> requests) {
  for (const Request& request : requests)
    co_await in_flight::Record(history_, member, NumberOf(member), request);
  co_return Done{};
}

void Play::Begin(Member& member, const Request& request, uint64_t steps) {
  BeginAll(member, {request}, steps);
}

void Play::BeginAll(Member& member, const std::vector<Request>& requests, uint64_t steps) {
  for (const Request& request : requests) keys_[request.key];
  tasks_.emplace_back(&member, RecordAll(member, requests));
  tasks_.back().second.Start();
  const Task<Done>& task = tasks_.back().second;
  for (uint64_t step = 0; step < steps && !task.done(); ++step) world.fabric.Step();
}

bool Play::BeginUntil(Member& member, const Request& request, const std::function<bool()>& there) {
  Begin(member, request);
  const Task<Done>& task = tasks_.back().second;
  while (!there()) {
    if (task.done() || !world.fabric.Step()) return false;
  }
  return true;
}

bool Play::over() const {
  return std::all_of(tasks_.begin(), tasks_.end(),
                     [](const auto& task) { return task.second.done() || task.first->crashed(); });
}

bool Play::OverOf(const Member& member) const {
  return std::all_of(tasks_.begin(), tasks_.end(), [&](const auto& task) {
    return task.first != &member || task.second.done() || task.first->crashed();
  });
}

void Play::Finish() {
  Drive([&] { return over(); });
  if (!over()) world.Complain("a client waits for ever");
  tasks_.clear();
}

void Play::FinishOf(const Member& member) {
  Drive([&] { return OverOf(member); });
  if (!OverOf(member)) world.Complain("a client waits for ever");
}

// A client that has nothing else to do waits for so long, and the others are kept alive meanwhile.
void Play::LetPass(Nanos time) {
  constexpr Nanos kStep = std::chrono::milliseconds(1);
  const auto idle = std::find_if(members_.begin(), members_.end(),
                                 [&](const auto& member) { return !member->crashed() && OverOf(*member); });
  if (idle == members_.end()) return world.Complain("every client is busy");
  for (Nanos left = time; left > Nanos(0); left -= std::min(left, kStep)) {
    Task<Done> pause = (*idle)->Pause(std::min(left, kStep));
    pause.Start();
    Drive([&] { return pause.done(); });
  }
}

bool Play::DieAt(Member& member, uint64_t verb, FaultKind kind, const Request& request) {
  keys_[request.key];
  return member.RunAndDieAt(verb, kind, in_flight::Record(history_, member, NumberOf(member), request));
}

// ---- growth ----------------------------------------------------------------------------------------------

namespace {

constexpr int kMostRounds = 60;

}  // namespace

// If it takes long, then because a client has died; it takes a lease to be sure of that.
void Play::PauseAfter(int round) {
  if (round >= 10) grower_->Now(grower_->Pause(std::chrono::milliseconds(1)));
}

void Play::Announce(const std::vector<Member*>& listen) {
  for (const auto& member : members_) {
    if (!member->crashed()) member->Now(member->Sync());  // reports its records
  }
  if (grower_ == nullptr) grower_ = &Enter({{"max_load", "0.000001"}});
  const uint32_t version = world.state().version();
  for (int round = 0; round < kMostRounds && world.state().phase() != Phase::kAnnounced; ++round) {
    grower_->Now(grower_->Sync());
    grower_->Now(grower_->Get("looks"));
    PauseAfter(round);
  }
  if (world.state().phase() != Phase::kAnnounced || world.state().version() != version)
    world.Complain("no growth was announced");
  for (Member* member : listen) Learn(*member);
}

void Play::Activate() {
  const uint32_t version = world.state().version();
  for (int round = 0; round < kMostRounds && world.state().version() == version; ++round) {
    PauseAfter(round);
    for (const auto& member : members_) {
      if (member.get() != grower_ && !member->crashed()) member->Now(member->Sync());
    }
    grower_->Now(grower_->Maintain());
    // The grower would announce the next one in the same breath if it synced before it looks.
    grower_->Now(grower_->Get("looks"));
  }
  if (world.state().version() == version) world.Complain("the growth does not come to count");
}

void Play::Learn(Member& member) {
  member.Now(member.Sync());
  member.Now(member.Get("looks"));
}

void Play::Grow() {
  Announce({});
  for (const auto& member : members_) {
    if (member.get() != grower_) Learn(*member);
  }
  Activate();
  for (const auto& member : members_) {
    if (member.get() != grower_) Learn(*member);
  }
}

// ---- the table as it stands in memory --------------------------------------------------------------------

std::byte* Play::AddressOf(uint64_t slot) const {
  std::byte* const memory = world.memory().data();
  const size_t segment = shape_.SegmentOf(slot);
  const uint64_t base = LoadU64(memory + world.roots[0].offset + kDirectoryOffset + segment * 8);
  if (base == 0) return nullptr;
  return memory + base + (slot - shape_.FirstSlot(segment)) * sizeof(Word);
}

Word Play::At(uint64_t slot) const {
  const std::byte* const at = AddressOf(slot);
  return at == nullptr ? Word() : Word(LoadU64(at));
}

void Play::Set(uint64_t slot, Word word) { StoreU64(AddressOf(slot), word.word()); }

bool Play::Has(uint64_t slot, Kind kind, const std::string& key) const {
  const Word word = At(slot);
  if (!word.is(kind) || word.bytes() == 0) return false;
  const Result<Item> item = DecodeItem(world.memory().subspan(word.offset(), word.bytes()));
  return item.ok() && item->key == key;
}

uint64_t Play::EffectiveSlotOf(const KeyHash& hash, Candidate candidate) const {
  const uint32_t newest = world.state().version() + world.state().steps();
  uint64_t slot = hash.SlotOf(shape_, candidate, newest);
  while (shape_.HasParent(slot) && !At(slot).is_effective()) slot = Shape::ParentOf(slot);
  return slot;
}

bool Play::HasPending(const std::string& key, bool on_the_way) const {
  std::set<uint64_t> seen;
  std::vector<uint64_t> next;
  for (const Candidate candidate : {Candidate::kPrimary, Candidate::kSecondary})
    next.push_back(EffectiveSlotOf(HashOf(key), candidate));
  while (!next.empty()) {
    const uint64_t slot = next.back();
    next.pop_back();
    const Word word = At(slot);
    if (word.is(Kind::kPending)) return true;
    if (!on_the_way || !word.is(Kind::kLive) || !seen.insert(slot).second) continue;
    const Result<Item> item = DecodeItem(world.memory().subspan(word.offset(), word.bytes()));
    if (!item.ok()) continue;
    for (const Candidate candidate : {Candidate::kPrimary, Candidate::kSecondary})
      next.push_back(EffectiveSlotOf(KeyHash(item->hash), candidate));
  }
  return false;
}

// ---- the end ---------------------------------------------------------------------------------------------

// What an operation that has ended leaves behind is a value, or nothing.
void Play::CheckSlots() {
  const uint32_t newest = world.state().version() + world.state().steps();
  for (uint64_t slot = 0; slot < shape_.slots(newest); ++slot) {
    const Kind kind = At(slot).kind();
    if (kind == Kind::kClaim || kind == Kind::kPending || kind == Kind::kSplitting)
      world.Complain(fmt::format("slot {} has a claim, an entry or a mark of a client that is done", slot));
  }
}

std::string Play::End() {
  Finish();
  if (!dead_) CheckSlots();
  std::map<std::string, std::string> present;
  for (const auto& member : members_) {
    if (member->crashed() || member.get() == grower_) continue;
    for (const auto& [key, unused] : keys_) Do(*member, nessie::Get(key));
  }
  Member& last = Enter();
  for (const auto& [key, unused] : keys_) {
    Do(last, nessie::Get(key));
    const std::string value = last.Now(last.Get(key));
    if (value != "absent") present[key] = value;
  }
  for (const check::Operation& operation : history_.operations()) {
    if (operation.refused()) world.Complain(fmt::format("{}: {}", operation.key, operation.why));
  }
  const check::Verdict verdict = check::CheckLinearizable(history_);
  if (!verdict.ok()) world.Complain(check::ToString(verdict) + "\n" + check::Chart(history_.operations()));
  // At least once: what a dead client left may be met too.
  std::map<std::string, std::string> listed;
  for (const auto& [key, value] : last.Now(last.List())) listed[key] = value;
  if (listed != present)
    world.Complain(fmt::format("the cursor has {} records and not {}", listed.size(), present.size()));
  // They are gone without a word, and the last one finds what they have left.
  upkeep_.clear();
  while (members_.size() > 1) members_.erase(members_.begin());
  if (world.problem.empty()) last.Audit();
  return world.problem;
}

}  // namespace farside::index::nessie
