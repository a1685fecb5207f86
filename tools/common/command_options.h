// What commands are made of: operands, flags, numbers and names, on top of the command-line library.
//
// Numbers and names are read here and not by the library: it takes 010 for 8, and its messages are for
// programmers.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <system_error>

#include <fmt/format.h>
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "base/bytes.h"
#include "index/index.h"

namespace farside::tools {

class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter() { column_width(22); }

  std::string make_usage(const CLI::App* app, std::string name) const override;
};

// Ends the parsing with a line that starts with the option's name.
[[noreturn]] void Complain(const std::string& option, const std::string& why);

// A word that must be given, in the order of the calls.
void AddOperand(CLI::App& app, const std::string& name, std::string& into, const std::string& about);
// URL, the pool: FARSIDE_URL in the environment stands for one that is left out (command_line.cc).
void AddUrl(CLI::App& app, std::string& into);
// An operand of which there may be none.
void AddOptionalOperand(CLI::App& app, const std::string& name, std::string& into, const std::string& about);
CLI::Option* AddFlag(CLI::App& app, const std::string& name, bool& into, const std::string& about);
void AddText(CLI::App& app, const std::string& name, std::string& into, const std::string& word,
             const std::string& about);
// The same, for which an empty text is something else than none.
void AddText(CLI::App& app, const std::string& name, std::optional<std::string>& into,
             const std::string& word, const std::string& about);
// A number that may have a fraction, as in 0.5.
void AddSeconds(CLI::App& app, const std::string& name, std::optional<double>& into, double most,
                const std::string& about);
// --engine NAME
void AddEngine(CLI::App& app, std::string& into, const std::string& about);
// --option K=V
void AddEngineOptions(CLI::App& app, index::OptionMap& into);

// ---- whole numbers

template <class Number>
std::string DefaultText(const Number& number) {
  return fmt::format(", by default {}", number);
}
template <class Number>
std::string DefaultText(const std::optional<Number>&) {
  return "";
}
template <class Number>
void SetNumber(Number& into, uint64_t number) {
  into = static_cast<Number>(number);
}
template <class Number>
void SetNumber(std::optional<Number>& into, uint64_t number) {
  into = static_cast<Number>(number);
}

template <class Number>
CLI::Option* AddNumber(CLI::App& app, const std::string& name, Number& into, uint64_t low, uint64_t high,
                       const std::string& about) {
  const auto read = [&into, name, low, high](const std::string& text) {
    uint64_t number = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (failure != std::errc() || end != text.data() + text.size() || number < low || number > high) {
      Complain(name, fmt::format("'{}' is not a whole number from {} to {}", Escape(text), low, high));
    }
    SetNumber(into, number);
  };
  const std::string bounds = fmt::format("; {} to {}{}", low, high, DefaultText(into));
  return app.add_option_function<std::string>(name, read, about + bounds)->option_text("N")->take_last();
}

}  // namespace farside::tools
