#include "check/history.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace farside::check {
namespace {

TEST(History, EventsAreNumberedByTheOrderOfCalls) {
  // Given: two overlapping operations, one refused, one lost.
  // When: they are recorded.
  // Expect: invocations and ends count up; a lost answer is no event.
  History h;
  const OpId put = h.Invoke(0, Call::Put("k", "v"));
  const OpId get = h.Invoke(1, Call::Get("k"));
  h.Return(get, Found{"v"});
  h.Return(put, Stored{});
  const OpId lost = h.Invoke(0, Call::Delete("k"));
  h.LoseAnswer(lost);
  const OpId refused = h.Invoke(2, Call::Increment("k", 3));
  h.Refuse(refused, "kContended: retry later");

  EXPECT_EQ(h[put].invoked, 0u);
  EXPECT_EQ(h[get].invoked, 1u);
  EXPECT_EQ(h[get].returned, 2u);
  EXPECT_EQ(h[put].returned, 3u);
  EXPECT_EQ(h[lost].invoked, 4u);
  EXPECT_EQ(h[lost].returned, kNever);
  EXPECT_EQ(h[refused].invoked, 5u);
  EXPECT_EQ(h[refused].returned, 6u);
  EXPECT_EQ(h.events(), 7u);
  EXPECT_TRUE(h[put].answered());
  EXPECT_TRUE(h[lost].maybe());
  EXPECT_TRUE(h[refused].refused());
  EXPECT_EQ(h[get].outcome, Outcome(Found{"v"}));
}

TEST(History, ClearedHistoryShowsNothingOfTheOldOne) {
  // Given: a history whose operations had answers, errors and arguments.
  // When: it is cleared and used again.
  // Expect: numbers start at 0, and an operation without an answer has none.
  History h;
  h.Return(h.Invoke(0, Call::CompareAndSet("old", "from", "to")), Applied{true});
  h.Refuse(h.Invoke(0, Call::Put("old", "v")), "kFenced: register anew");
  h.Clear();
  EXPECT_TRUE(h.operations().empty());
  const OpId id = h.Invoke(7, Call::Get("new"));
  ASSERT_EQ(h.operations().size(), 1u);
  EXPECT_EQ(h[id].invoked, 0u);
  EXPECT_EQ(h[id].returned, kNever);
  EXPECT_TRUE(h[id].maybe());
  EXPECT_EQ(h[id].value, "");
  EXPECT_EQ(h[id].expected, "");
  EXPECT_EQ(ToString(h[id]), "client 7: Get(new) -> no answer");
}

TEST(Printable, WordsAreBareAndTheRestIsQuotedOrCounted) {
  // Given: keys and values of all sorts. When: they are printed. Expect: no two look the same, and none
  // breaks a line.
  EXPECT_EQ(Printable("key:1/a-b_c.d"), "key:1/a-b_c.d");
  EXPECT_EQ(Printable(""), "\"\"");
  EXPECT_EQ(Printable("a b"), "\"a b\"");
  EXPECT_EQ(Printable("absent"), "\"absent\"");
  EXPECT_EQ(Printable("#7"), "\"#7\"");
  EXPECT_EQ(Printable(std::string("\0\n\xff", 3)), "\"\\x00\\x0a\\xff\"");
  EXPECT_EQ(Printable("a\"b\\"), "\"a\\\"b\\\\\"");
  EXPECT_EQ(Printable("8letters"), "8letters");
  EXPECT_EQ(Printable(std::string("\x07\0\0\0\0\0\0\0", 8)), "#7");
  EXPECT_EQ(Printable(std::string(8, '\xff')), "#18446744073709551615");
  EXPECT_EQ(Printable(std::string(1000, 'a')), "\"aaaaaaaaaaaaaaaa\"...(1000 bytes, hash 7147db7c)");
}

TEST(ToString, EveryKindAndAnswer) {
  // Given: one operation of each kind. When: it is printed. Expect: the call and the answer.
  History h;
  auto text = [&h](const Call& call, Outcome outcome) {
    const OpId id = h.Invoke(2, call);
    h.Return(id, std::move(outcome));
    return ToString(h[id]);
  };
  EXPECT_EQ(text(Call::Get("k1"), Found{"v7"}), "client 2: Get(k1) -> v7");
  EXPECT_EQ(text(Call::Get("k1"), Found{std::nullopt}), "client 2: Get(k1) -> absent");
  EXPECT_EQ(text(Call::Put("k1", "v7"), Stored{}), "client 2: Put(k1, v7) -> ok");
  EXPECT_EQ(text(Call::Put("k1", "v7"), Stored{true}), "client 2: Put(k1, v7) -> inserted");
  EXPECT_EQ(text(Call::Put("k1", "v7"), Stored{false}), "client 2: Put(k1, v7) -> replaced");
  EXPECT_EQ(text(Call::Insert("k1", "v7"), Applied{true}), "client 2: Insert(k1, v7) -> applied");
  EXPECT_EQ(text(Call::Update("k1", "v7"), Applied{false}), "client 2: Update(k1, v7) -> not applied");
  EXPECT_EQ(text(Call::Delete("k1"), Applied{true}), "client 2: Delete(k1) -> applied");
  EXPECT_EQ(text(Call::CompareAndSet("k1", "v7", "v8"), Applied{true}),
            "client 2: CompareAndSet(k1, v7, v8) -> applied");
  EXPECT_EQ(text(Call::Increment("k1", 5), Counted{12}), "client 2: Increment(k1, 5) -> #12");
}

TEST(Chart, ShowsWhatOverlaps) {
  // Given: a Get within a Put, a lost Put, a Get after it, and a refused Delete of client 10.
  // When: the history is drawn.
  // Expect: one row each, bars by event, the lost one open to the right.
  History h;
  const OpId put = h.Invoke(0, Call::Put("k1", "v7"));
  const OpId get = h.Invoke(1, Call::Get("k1"));
  h.Return(get, Found{std::nullopt});
  h.Return(put, Stored{});
  h.LoseAnswer(h.Invoke(1, Call::Put("k1", "v8")));
  const OpId refused = h.Invoke(10, Call::Delete("k1"));
  h.Return(h.Invoke(0, Call::Get("k1")), Found{"v8"});
  h.Refuse(refused, "kContended");
  EXPECT_EQ("\n" + Chart(h.operations()), R"(
0..3  client 0   Put(k1, v7) -> ok                  |========|
1..2  client 1   Get(k1) -> absent                     |==|
 4..  client 1   Put(k1, v8) -> no answer                       |~~~~~~~~~~~~~~~
5..8  client 10  Delete(k1) -> refused: kContended                 |========x
6..7  client 0   Get(k1) -> v8                                        |==|
)");
}

TEST(Chart, LongHistoryHasNoBars) {
  // Given: more events than a screen has columns. When: the history is drawn. Expect: one row for each
  // operation, with its event numbers.
  History h;
  for (int i = 0; i < 100; ++i) h.Return(h.Invoke(0, Call::Put("k", "v")), Stored{});
  const std::string chart = Chart(h.operations());
  EXPECT_EQ(std::count(chart.begin(), chart.end(), '\n'), 100);
  EXPECT_EQ(chart.find('|'), std::string::npos);
  EXPECT_NE(chart.find("198..199  client 0  Put(k, v) -> ok\n"), std::string::npos);
}

}  // namespace
}  // namespace farside::check
