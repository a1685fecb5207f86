#include "farside/result.h"

#include <memory>
#include <sstream>
#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace farside {
namespace {

Result<std::string> Full() { return Error(ErrorCode::kOutOfMemory, "node 2 is full; delete records"); }

// Given an error. When it is streamed. Expect its code and its message, as ToString has them.
TEST(Error, CanBeStreamed) {
  std::ostringstream out;
  out << "put: " << Full().error();
  EXPECT_EQ(out.str(), "put: kOutOfMemory: node 2 is full; delete records");
  EXPECT_EQ(out.str(), "put: " + Full().error().ToString());
}

// Given results with a value. Expect that it can be read, changed and moved out.
TEST(Result, GivesItsValue) {
  Result<std::string> text = std::string("a");
  ASSERT_TRUE(text.ok());
  *text += "b";
  text->append("c");
  EXPECT_EQ(text.value(), "abc");
  EXPECT_EQ(std::as_const(text)->size(), 3u);
  Result<std::unique_ptr<int>> number = std::make_unique<int>(7);
  const std::unique_ptr<int> moved = *std::move(number);
  EXPECT_EQ(*moved, 7);
}

// Given a result with an error. When its value is taken, in any way. Expect that the program ends with the
// error on stderr, also in a build without asserts.
TEST(ResultDeathTest, TheValueOfAnErrorEndsTheProgramWithTheError) {
  constexpr const char* kLine =
      "the value of a failed Result was used: kOutOfMemory: node 2 is full; delete records";
  Result<std::string> full = Full();
  const Result<std::string> also_full = Full();
  EXPECT_DEATH(static_cast<void>(*full), kLine);
  EXPECT_DEATH(static_cast<void>(full->size()), kLine);
  EXPECT_DEATH(static_cast<void>(also_full.value()), kLine);
  EXPECT_DEATH(static_cast<void>(Full().value()), kLine);
}

// Given a result with a value. When its error is taken. Expect that the program ends with a line on stderr.
TEST(ResultDeathTest, TheErrorOfAValueEndsTheProgram) {
  const Status fine = OkStatus();
  EXPECT_DEATH(static_cast<void>(fine.error()), "the error of a Result that has a value was used");
}

}  // namespace
}  // namespace farside
