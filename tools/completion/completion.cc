#include "tools/completion/completion.h"

#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "store/engines.h"
#include "tools/paper/experiment.h"

namespace farside::tools {
namespace {

using Words = std::vector<std::string>;

// ---- what there is -----------------------------------------------------------------------------------

// Commands that are hidden from the help have no group, and so it is with options.
std::vector<const CLI::App*> CommandsOf(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* command) { return !command->get_group().empty(); });
}

Words NamesOf(const std::vector<const CLI::App*>& commands) {
  Words names;
  for (const CLI::App* command : commands) names.push_back(command->get_name());
  return names;
}

std::vector<const CLI::Option*> OptionsOf(const CLI::App& app) {
  return app.get_options(
      [](const CLI::Option* option) { return !option->get_positional() && !option->get_group().empty(); });
}

// "--help" and "-h".
Words SpellingsOf(const CLI::Option& option) {
  Words names;
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  return names;
}

bool TakesValue(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

// ---- what words may stand at a place -----------------------------------------------------------------

// Nothing if anything may.
Words ValuesOf(const CLI::App& command, const CLI::Option& option) {
  Words values;
  if (option.get_name() == "--engine") {
    const bool measures = command.get_name() == "bench";
    for (const store::EngineEntry& engine : measures ? store::AllEngines() : store::Engines())
      values.emplace_back(engine.name);
  }
  return values;
}

Words OperandsOf(const CLI::App& command, const CLI::App& farside) {
  if (command.get_name() == "help") return NamesOf(CommandsOf(farside));
  if (command.get_name() == "completion") return {kCompletionShells.begin(), kCompletionShells.end()};
  Words names;
  if (command.get_name() == "paper") {
    names.emplace_back("list");
    for (const paper::Experiment& experiment : paper::Experiments()) names.emplace_back(experiment.name);
  }
  return names;
}

// Calls `visit(command, path)` for the program, whose path is empty, and for every command.
template <class Visit>
void ForEachCommand(const CLI::App& app, const std::string& path, const Visit& visit) {
  visit(app, path);
  for (const CLI::App* command : CommandsOf(app))
    ForEachCommand(*command, path.empty() ? command->get_name() : path + " " + command->get_name(), visit);
}

// ---- bash --------------------------------------------------------------------------------------------

constexpr std::string_view kBashHead =
    R"(# Completion of farside for bash, printed by 'farside completion bash'.
_farside() {
  local command='' word offered='' values=''
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$command/$word" in
)";

constexpr std::string_view kBashMiddle = R"(    esac
  done
  case "$command" in
)";

// Where nothing is offered, readline offers files.
constexpr std::string_view kBashTail = R"(  esac
  if [[ -n $values ]]; then offered=$values; fi
  mapfile -t COMPREPLY < <(compgen -W "$offered" -- "$current")
}
complete -o default -F _farside farside
)";

std::string BashScript(const CLI::App& farside) {
  std::string script(kBashHead);
  ForEachCommand(farside, "", [&](const CLI::App&, const std::string& path) {
    if (path.empty()) return;
    const size_t space = path.rfind(' ');
    const std::string parent = space == std::string::npos ? "" : path.substr(0, space);
    const std::string name = space == std::string::npos ? path : path.substr(space + 1);
    script += fmt::format("      '{}/{}') command='{}' ;;\n", parent, name, path);
  });
  script += kBashMiddle;
  ForEachCommand(farside, "", [&](const CLI::App& command, const std::string& path) {
    Words words = NamesOf(CommandsOf(command));
    for (const std::string& operand : OperandsOf(command, farside)) words.push_back(operand);
    Words options;
    std::string values;
    for (const CLI::Option* option : OptionsOf(command)) {
      for (const std::string& name : SpellingsOf(*option)) options.push_back(name);
      if (!TakesValue(*option)) continue;
      const Words known = ValuesOf(command, *option);
      // A space, so that options are not offered where a value belongs.
      values += fmt::format("        {}) values='{} ' ;;\n", fmt::join(SpellingsOf(*option), " | "),
                            fmt::join(known, " "));
    }
    script += fmt::format("    '{}')\n      offered='{}'\n", path, fmt::join(words, " "));
    script += fmt::format("      if [[ $current == -* ]]; then offered='{}'; fi\n", fmt::join(options, " "));
    if (!values.empty()) script += fmt::format("      case \"$previous\" in\n{}      esac\n", values);
    script += "      ;;\n";
  });
  return script + std::string(kBashTail);
}

// ---- zsh ---------------------------------------------------------------------------------------------

// Text inside of a specification of _arguments or _describe, between single quotes.
std::string ZshText(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\'') {
      escaped += "'\\''";
      continue;
    }
    if (c == '[' || c == ']' || c == ':' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

// What _arguments does with a word: offers these, or files where it is a path, or nothing.
std::string ZshAction(const Words& words, std::string_view what) {
  if (!words.empty()) return fmt::format("({})", fmt::join(words, " "));
  return what == "PATH" || what == "FILE" || what == "URL" ? "_files" : " ";
}

std::string ZshOptions(const CLI::App& command) {
  std::string specs;
  for (const CLI::Option* option : OptionsOf(command)) {
    for (const std::string& name : SpellingsOf(*option)) {
      const std::string value =
          TakesValue(*option) ? fmt::format(":{}:{}", ZshText(option->get_option_text()),
                                            ZshAction(ValuesOf(command, *option), option->get_option_text()))
                              : "";
      specs += fmt::format(" \\\n        '{}{}[{}]{}'", name, value.empty() ? "" : "=",
                           ZshText(option->get_description()), value);
    }
  }
  return specs;
}

std::string ZshOperands(const CLI::App& command, const CLI::App& farside) {
  std::string specs;
  size_t number = 0;
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional()) continue;
    const std::string name = option->get_name(true);
    specs +=
        fmt::format(" \\\n        '{}:{}:{}'", ++number, name, ZshAction(OperandsOf(command, farside), name));
  }
  return specs;
}

std::string ZshCommands(const std::vector<const CLI::App*>& commands) {
  std::string lines;
  for (const CLI::App* command : commands)
    lines += fmt::format("        '{}:{}'\n", command->get_name(), ZshText(command->get_description()));
  return lines;
}

// A command with commands of its own offers them first, and then what the named one takes.
std::string ZshBody(const CLI::App& command, const CLI::App& farside, const std::string& path) {
  const std::vector<const CLI::App*> commands = CommandsOf(command);
  if (commands.empty())
    return fmt::format("      _arguments{}{}\n", ZshOptions(command), ZshOperands(command, farside));
  return fmt::format(
      "      if ((CURRENT == 2)) && [[ $words[2] != -* ]]; then\n"
      "        commands=(\n{}        )\n"
      "        _describe command commands\n"
      "      elif ((CURRENT == 2)); then\n"
      "        _arguments{}\n"
      "      else\n"
      "        shift words\n"
      "        ((CURRENT--))\n"
      "        _farside_command \"{}$words[1]\"\n"
      "      fi\n",
      ZshCommands(commands), ZshOptions(command), path.empty() ? "" : path + " ");
}

std::string ZshScript(const CLI::App& farside) {
  std::string script =
      "#compdef farside\n"
      "# Completion of farside for zsh, printed by 'farside completion zsh'.\n"
      "_farside_command() {\n"
      "  local -a commands\n"
      "  case $1 in\n";
  ForEachCommand(farside, "", [&](const CLI::App& command, const std::string& path) {
    script += fmt::format("    '{}')\n{}      ;;\n", path, ZshBody(command, farside, path));
  });
  script += "  esac\n}\n_farside() { _farside_command '' }\n";
  // As a function of $fpath the file is the function; sourced, it has to be tied to the command.
  return script +
         "if [[ $funcstack[1] == _farside ]]; then\n  _farside \"$@\"\nelse\n  compdef _farside "
         "farside\nfi\n";
}

}  // namespace

std::string CompletionScript(std::string_view shell, const CLI::App& farside) {
  return shell == "zsh" ? ZshScript(farside) : BashScript(farside);
}

}  // namespace farside::tools
