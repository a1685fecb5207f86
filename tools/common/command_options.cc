#include "tools/common/command_options.h"

#include <vector>

#include "store/engines.h"

namespace farside::tools {
namespace {

void ReadEngineOptions(const std::vector<std::string>& texts, index::OptionMap& options) {
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos) {
      Complain("--option", fmt::format("'{}' is not of the form name=value", Escape(text)));
    }
    options[text.substr(0, equals)] = text.substr(equals + 1);
  }
}

}  // namespace

std::string HelpFormatter::make_usage(const CLI::App* app, std::string name) const {
  std::string words = app->get_subcommands({}).empty() ? "" : " COMMAND";
  for (const CLI::Option* option : app->get_options()) {
    if (!option->get_positional()) continue;
    const std::string operand = option->get_name(true);
    const bool needed = option->get_required() && operand != "URL";  // FARSIDE_URL may stand for it
    words += needed ? " " + operand : " [" + operand + "]";
  }
  return fmt::format("\nUsage: {}{}{}\n", name, words, words == " [COMMAND]" ? "" : " [OPTIONS]");
}

void Complain(const std::string& option, const std::string& why) { throw CLI::ValidationError(option, why); }

void AddOperand(CLI::App& app, const std::string& name, std::string& into, const std::string& about) {
  app.add_option(name, into, about)->option_text(" ")->required();
}

void AddUrl(CLI::App& app, std::string& into) {
  AddOperand(app, "URL", into, "The pool; if it is left out, the URL in FARSIDE_URL");
}

void AddOptionalOperand(CLI::App& app, const std::string& name, std::string& into, const std::string& about) {
  app.add_option(name, into, about)->option_text(" ");
}

CLI::Option* AddFlag(CLI::App& app, const std::string& name, bool& into, const std::string& about) {
  return app.add_flag(name, into, about)->disable_flag_override();
}

void AddText(CLI::App& app, const std::string& name, std::string& into, const std::string& word,
             const std::string& about) {
  app.add_option(name, into, about)->option_text(word)->take_last();
}

void AddText(CLI::App& app, const std::string& name, std::optional<std::string>& into,
             const std::string& word, const std::string& about) {
  app.add_option_function<std::string>(
         name, [&into](const std::string& text) { into = text; }, about)
      ->option_text(word)
      ->take_last();
}

void AddSeconds(CLI::App& app, const std::string& name, std::optional<double>& into, double most,
                const std::string& about) {
  const auto read = [&into, name, most](const std::string& text) {
    double number = 0;
    const auto [end, failure] =
        std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
    if (failure != std::errc() || end != text.data() + text.size() || !(number > 0 && number <= most)) {
      Complain(name,
               fmt::format("'{}' is not a number of seconds, more than 0 and up to {}", Escape(text), most));
    }
    into = number;
  };
  app.add_option_function<std::string>(name, read, about)->option_text("S")->take_last();
}

void AddEngine(CLI::App& app, std::string& into, const std::string& about) {
  app.add_option(
         "--engine", into,
         fmt::format("{}: {} (ordered: {})", about, store::EngineNames(), store::OrderedEngineNames()))
      ->option_text("NAME")
      ->take_last();
}

void AddEngineOptions(CLI::App& app, index::OptionMap& into) {
  app.add_option_function<std::vector<std::string>>(
         "--option", [&into](const std::vector<std::string>& texts) { ReadEngineOptions(texts, into); },
         "An option of the engine; may be repeated")
      ->option_text("K=V")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
}

}  // namespace farside::tools
