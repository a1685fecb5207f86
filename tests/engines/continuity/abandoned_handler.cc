#include "tests/engines/continuity/abandoned_handler.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "tests/engines/continuity/bare_table.h"

namespace farside::index::continuity {
namespace {

constexpr uint64_t kRegionBytes = 16 * 1024;
constexpr Shape kShape(1, 1, 2, 2, 1);

// Memory whose n-th load or store is of a line that is held for too long: a load yields nothing, and no store
// takes effect from then on. No further handler finds the root there: the client was told of an error.
class HeldMemory final : public fabric::NodeMemory {
 public:
  HeldMemory(std::span<std::byte> bytes, uint64_t left) : memory_(bytes), left_(left) {}

  bool gave_up() const { return gave_up_; }
  uint64_t bytes() const override { return memory_.bytes(); }
  uint64_t Load(uint64_t offset) const override {
    const bool no_more = gave_up_ && offset / fabric::kLineBytes == kBareRoot / fabric::kLineBytes;
    return IsHeld() || no_more ? 0 : memory_.Load(offset);
  }
  void Store(uint64_t offset, uint64_t word) override {
    if (!IsHeld() && !gave_up_) memory_.Store(offset, word);
  }

 private:
  bool IsHeld() const {
    const bool held = left_-- == 0;
    gave_up_ |= held;
    return held;
  }

  PlainMemory memory_;
  mutable uint64_t left_;
  mutable bool gave_up_ = false;
};

class Changes {
 public:
  Changes() : bytes_(EmptyTable(kShape, kRegionBytes)) {}

  AbandonedReport Run(const std::vector<BareChange>& script) {
    for (const BareChange& change : script) {
      after_ = before_;
      ApplyTo(after_, change);
      for (uint64_t access = 0; GivesUpAt(change, access); ++access) ++report_.abandoned;
      PlainMemory memory(bytes_);
      if (!client_.Make(memory, change).ok()) Complain("it is refused");
      if (!report_.problem.empty()) break;
      before_ = after_;
    }
    report_.groups = client_.groups();
    report_.tables = client_.tables();
    return report_;
  }

 private:
  // False: there are not so many.
  bool GivesUpAt(const BareChange& change, uint64_t access) {
    where_ = fmt::format("{}, access {}", change.key, access);
    std::vector<std::byte> bytes = bytes_;
    BareClient client = client_;
    HeldMemory held(bytes, access);
    static_cast<void>(client.Make(held, change));
    if (!held.gave_up() || !report_.problem.empty()) return false;
    ExpectRecords("afterwards", {.bytes = bytes}, {before_, after_});
    // The client was not told what of its memory is linked; a sweep finds out.
    if (const auto content = BareView{.bytes = bytes}.Content(); content.ok()) client.KeepOnly(content->used);
    // The next handler, although it changes nothing.
    PlainMemory memory(bytes);
    if (!client.Make(memory, {.kind = ChangeKind::kDelete, .key = "absent"}).ok())
      Complain("a later handler is refused");
    ExpectRecords("behind a later handler", {.bytes = bytes, .live = true}, {before_, after_});
    if (!client.Make(memory, {.key = change.key, .value = "last"}).ok())
      Complain("a later change is refused");
    BareModel last = before_;
    last[change.key] = "last";
    ExpectRecords("behind a later change", {.bytes = bytes, .live = true}, {last});
    return true;
  }

  void ExpectRecords(std::string_view when, const BareView& view, const std::vector<BareModel>& either) {
    const auto records = view.Records();
    if (!records.ok()) return Complain(fmt::format("{}: {}", when, records.error().message()));
    const BareModel found(records->begin(), records->end());
    if (std::ranges::find(either, found) == either.end())
      Complain(fmt::format("{}: there are other records", when));
  }

  void Complain(std::string_view what) {
    if (report_.problem.empty()) report_.problem = fmt::format("{}: {}", where_, what);
  }

  std::vector<std::byte> bytes_;
  BareClient client_{FirstFree(kShape)};
  BareModel before_;
  BareModel after_;
  std::string where_;
  AbandonedReport report_;
};

}  // namespace

AbandonedReport HandlersGiveUp() {
  std::vector<BareChange> script;
  for (int i = 0; i < 8; ++i) {
    const std::string key = fmt::format("k{}", i);
    script.push_back({.key = key, .value = i % 3 == 0 ? std::string(70, 'v') : "v"});
    if (i % 2 == 0) script.push_back({.key = key, .value = fmt::format("w{}", i)});
    if (i % 3 == 1) script.push_back({.kind = ChangeKind::kDelete, .key = key});
    if (i % 3 == 2) script.push_back({.kind = ChangeKind::kIncrement, .key = "counter", .delta = 1});
  }
  return Changes().Run(script);
}

}  // namespace farside::index::continuity
