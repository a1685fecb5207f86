// Hand-made histories with scans: what the rule of check/scans.h forbids, and what it allows.
#include "check/scans.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "check/history.h"
#include "check/linearizability.h"
#include "check/shrink.h"

namespace farside::check {
namespace {

using testing::HasSubstr;
using Records = std::vector<Record>;

class ScanVerdictTest : public testing::Test {
 protected:
  // An operation during which nothing else begins or ends.
  void Did(int client, const Call& call, Outcome outcome) {
    h_.Return(h_.Invoke(client, call), std::move(outcome));
  }
  void DidPut(std::string_view key, std::string_view value) { Did(0, Call::Put(key, value), Stored{}); }
  void DidDelete(std::string_view key) { Did(0, Call::Delete(key), Applied{true}); }
  void DidScan(const Call& call, Records records, bool more = false) {
    Did(1, call, Scanned{std::move(records), more});
  }

  void ExpectAllowed() const {
    const Verdict verdict = CheckLinearizable(h_, options_);
    EXPECT_EQ(verdict.answer, Answer::kLinearizable) << ToString(verdict) << "\n" << Chart(h_.operations());
  }
  // That this key is to blame.
  void ExpectViolation(std::string_view key) const {
    const Verdict verdict = CheckLinearizable(h_, options_);
    EXPECT_EQ(verdict.answer, Answer::kNotLinearizable) << Chart(h_.operations());
    EXPECT_EQ(verdict.key, key);
    EXPECT_EQ(verdict.malformed, "");
    EXPECT_LT(verdict.event, h_.events());
  }
  // That the scan is wrong by itself, and why.
  void ExpectMalformed(std::string_view why) const {
    const Verdict verdict = CheckLinearizable(h_, options_);
    EXPECT_EQ(verdict.answer, Answer::kNotLinearizable) << Chart(h_.operations());
    EXPECT_EQ(verdict.malformed, why);
    EXPECT_THAT(ToString(verdict), HasSubstr(why));
    const Witness witness = Shrink(h_, verdict, options_);
    ASSERT_EQ(witness.operations.size(), 1u);
    EXPECT_THAT(ToString(witness), HasSubstr("Scan("));
    EXPECT_THAT(ToString(witness), HasSubstr(why));
  }

  const Call all_ = Call::Scan("", std::nullopt, 10);
  History h_;
  CheckOptions options_;
};

using ScanViolation = ScanVerdictTest;
using ScanAllowed = ScanVerdictTest;
using ScanMalformed = ScanVerdictTest;

// ---- wrong about a key ---------------------------------------------------------------------------------

TEST_F(ScanViolation, MissesAKeyThatIsThereThroughout) {
  // Given two keys that were put. When a scan returns the other one only. Expect a violation of the one it
  // missed.
  DidPut("a", "1");
  DidPut("b", "2");
  DidScan(all_, {{"a", "1"}});
  ExpectViolation("b");
}

TEST_F(ScanViolation, MissesAKeyOfTheInitialTable) {
  // Given a key that was there before, and that no client has touched. When a scan does not return it. Expect
  // a violation.
  options_.initial = {{"a", "1"}};
  DidScan(all_, {});
  ExpectViolation("a");
}

TEST_F(ScanViolation, MissesAKeyBeforeTheLastOneReturned) {
  // Given three keys. When a scan that ends at its limit skips the second. Expect a violation: it covers what
  // it skipped.
  DidPut("a", "1");
  DidPut("b", "2");
  DidPut("c", "3");
  DidScan(Call::Scan("", std::nullopt, 2), {{"a", "1"}, {"c", "3"}}, true);
  ExpectViolation("b");
}

TEST_F(ScanViolation, DeniesThatThereAreMore) {
  // Given two keys. When a scan that ends at its limit says that there are no more. Expect a violation.
  DidPut("a", "1");
  DidPut("b", "2");
  DidScan(Call::Scan("", std::nullopt, 1), {{"a", "1"}}, false);
  ExpectViolation("b");
}

TEST_F(ScanViolation, SeesADeletedKey) {
  // Given a key that was deleted. When a later scan returns it. Expect a violation.
  DidPut("a", "1");
  DidDelete("a");
  DidScan(all_, {{"a", "1"}});
  ExpectViolation("a");
}

TEST_F(ScanViolation, SeesAValueThatWasReplaced) {
  // Given a value that was replaced. When a later scan returns the old one. Expect a violation.
  DidPut("a", "1");
  DidPut("a", "2");
  DidScan(all_, {{"a", "1"}});
  ExpectViolation("a");
}

TEST_F(ScanViolation, SeesAKeyThatNoClientWrote) {
  // Given a history without the key. When a scan returns it. Expect a violation.
  DidPut("a", "1");
  DidScan(all_, {{"a", "1"}, {"ghost", "x"}});
  ExpectViolation("ghost");
}

TEST_F(ScanViolation, GoesBackBehindAnEarlierScan) {
  // Given a Put without an answer. When a scan sees its value and a later scan does not. Expect a violation.
  DidPut("a", "1");
  h_.LoseAnswer(h_.Invoke(0, Call::Put("a", "2")));
  DidScan(all_, {{"a", "2"}});
  DidScan(all_, {{"a", "1"}});
  ExpectViolation("a");
}

TEST_F(ScanViolation, LastOverlooksAGreaterKey) {
  // Given two keys. When Last returns the smaller one. Expect a violation of the greater one.
  DidPut("a", "1");
  DidPut("b", "2");
  DidScan(Call::Last(), {{"a", "1"}});
  ExpectViolation("b");
}

TEST_F(ScanViolation, LastFindsNothing) {
  // Given a key of the range. When Last finds nothing in it. Expect a violation.
  DidPut("b", "1");
  DidScan(Call::Last("a", "c"), {});
  ExpectViolation("b");
}

TEST_F(ScanViolation, IsShrunkToWhatItSaysAboutTheKey) {
  // Given many operations on other keys, and a scan that misses one. When the violation is shrunk. Expect the
  // Put and the word of the scan, printed as such.
  for (int i = 0; i < 5; ++i) {
    DidPut("other", std::to_string(i));
    DidScan(all_, {{"other", std::to_string(i)}});
  }
  DidPut("k", "v");
  DidScan(all_, {{"other", "4"}});
  DidScan(all_, {{"k", "v"}, {"other", "4"}});
  const Verdict verdict = CheckLinearizable(h_, options_);
  ASSERT_EQ(verdict.answer, Answer::kNotLinearizable);
  const Witness witness = Shrink(h_, verdict, options_);
  std::vector<std::string> lines;
  for (const Operation& operation : witness.operations) lines.push_back(ToString(operation));
  EXPECT_EQ(lines, (std::vector<std::string>{"client 0: Put(k, v) -> ok",
                                             "client 1: Scan(\"\" to the end, 10) -> k: absent"}));
}

// ---- right, however it looks ---------------------------------------------------------------------------

TEST_F(ScanAllowed, KeysOfDifferentMoments) {
  // Given a scan during which "a" is deleted and then "b" is put. When it returns both, though they were
  // never there together. Expect that it is allowed: a scan is no snapshot.
  DidPut("a", "1");
  const OpId scan = h_.Invoke(1, all_);
  DidDelete("a");
  DidPut("b", "2");
  h_.Return(scan, Scanned{{{"a", "1"}, {"b", "2"}}, false});
  ExpectAllowed();
}

TEST_F(ScanAllowed, NeitherOfTwoThatPassedEachOther) {
  // Given the same. When it returns neither. Expect that it is allowed too.
  DidPut("a", "1");
  const OpId scan = h_.Invoke(1, all_);
  DidDelete("a");
  DidPut("b", "2");
  h_.Return(scan, Scanned{{}, false});
  ExpectAllowed();
}

TEST_F(ScanAllowed, NothingIsSaidBeyondTheLastKeyOfAFullPage) {
  // Given three keys. When a scan ends at its limit, and says that there may be more. Expect that what lies
  // beyond, or before the range, is not missed.
  DidPut("a", "1");
  DidPut("b", "2");
  DidPut("c", "3");
  DidScan(Call::Scan("b", std::nullopt, 1), {{"b", "2"}}, true);
  DidScan(Call::Scan("", "b", 5), {{"a", "1"}});
  DidScan(Call::Last("", "c"), {{"b", "2"}});
  ExpectAllowed();
}

TEST_F(ScanAllowed, MoreMayTurnOutToBeNothing) {
  // Given one key. When a scan of one returns it, and says that there may be more. Expect that it is allowed.
  DidPut("a", "1");
  DidScan(Call::Scan("", std::nullopt, 1), {{"a", "1"}}, true);
  DidScan(Call::Scan(std::string_view("a\0", 2), std::nullopt, 1), {});
  ExpectAllowed();
}

TEST_F(ScanAllowed, WithoutAnAnswerItSaysNothing) {
  // Given scans that were refused, or never answered. Expect that they mean nothing.
  DidPut("a", "1");
  h_.Refuse(h_.Invoke(1, all_), "contended");
  h_.LoseAnswer(h_.Invoke(1, all_));
  h_.Invoke(1, all_);
  ExpectAllowed();
}

TEST_F(ScanAllowed, EmptyRanges) {
  // Given a key. When ranges that cannot hold it are scanned. Expect that nothing is what they have.
  DidPut("a", "1");
  DidScan(Call::Scan("a", "a", 5), {});
  DidScan(Call::Scan("b", "a", 5), {});
  DidScan(Call::Last("b", "a"), {});
  ExpectAllowed();
}

// ---- wrong by itself -----------------------------------------------------------------------------------

TEST_F(ScanMalformed, OutOfOrder) {
  // Given two keys. When a scan returns them in the wrong order. Expect that it is wrong by itself.
  DidPut("a", "1");
  DidPut("b", "2");
  DidScan(all_, {{"b", "2"}, {"a", "1"}});
  ExpectMalformed("key a comes behind b");
}

TEST_F(ScanMalformed, AKeyTwice) {
  // Given a key. When a scan returns it twice. Expect that it is wrong by itself.
  DidPut("a", "1");
  DidScan(all_, {{"a", "1"}, {"a", "1"}});
  ExpectMalformed("key a comes twice");
}

TEST_F(ScanMalformed, OutsideOfTheRange) {
  // Given two keys. When a scan returns one that is not below the end of its range. Expect that it is wrong
  // by itself.
  DidPut("a", "1");
  DidPut("b", "2");
  DidScan(Call::Scan("a", "b", 5), {{"a", "1"}, {"b", "2"}});
  ExpectMalformed("key b is not in the range");
}

TEST_F(ScanMalformed, MoreThanTheLimit) {
  // Given two keys. When a scan of one returns both. Expect that it is wrong by itself.
  DidPut("a", "1");
  DidPut("b", "2");
  DidScan(Call::Scan("", std::nullopt, 1), {{"a", "1"}, {"b", "2"}});
  ExpectMalformed("it has 2 records, and the limit is 1");
}

TEST_F(ScanMalformed, StopsEarlyAndSaysThatThereAreMore) {
  // Given two keys. When a scan of two returns one, and says that there are more. Expect that it is wrong by
  // itself.
  DidPut("a", "1");
  DidPut("b", "2");
  DidScan(Call::Scan("", std::nullopt, 2), {{"a", "1"}}, true);
  ExpectMalformed("it ends after 1 records, before its limit of 2, and says that there are more");
}

TEST_F(ScanMalformed, TheFirstOfSeveralIsShown) {
  // Given two scans that are wrong by themselves. Expect the verdict about the one that returned first.
  const OpId slow = h_.Invoke(1, all_);
  DidScan(all_, {{"b", "2"}, {"a", "1"}});
  h_.Return(slow, Scanned{{{"a", "1"}, {"a", "1"}}, false});
  ExpectMalformed("key a comes behind b");
}

}  // namespace
}  // namespace farside::check
