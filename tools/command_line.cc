// Which commands there are, and what they understand; of what that is made is in command_options.h.
#include "tools/command_line.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/App.hpp>

#include "base/bytes.h"
#include "pool/region/url.h"
#include "store/engines.h"
#include "tools/common/command_options.h"
#include "tools/common/version.h"
#include "tools/completion/completion.h"
#include "tools/record_command_line.h"
#include "tools/serve/options.h"

namespace farside::tools {
namespace {

constexpr const char* kFarsideFooter =
    R"(Run 'farside help COMMAND' for the options of a command and for examples.
FARSIDE_URL in the environment names the pool where a command is given no URL.
Exit codes: 0 success, 1 a check does not hold or was not decided, 2 wrong usage, 3 could not run.)";

constexpr const char* kBenchFooter =
    R"(Workloads are those of YCSB: load (inserts every record once), a (half reads, half updates), b (5 %
updates), c (reads only), d (95 % reads of new records, 5 % inserts), f (half reads, half
read-modify-writes). A run has three phases: the load, a warm-up, and the run that is measured. Every
value that is read is verified.

A client is a session. On --fabric embedded it is a thread, and times are real. On --fabric sim all clients
live in a simulated cluster whose model is printed with the results, and times are virtual: the same on
every machine.

The same workload is run on 'raw' too, a bare array of slots: a search reads a bucket as large as the
engine's, and then a block, in two trips. An engine that takes fewer trips or bytes is faster than that.

Examples:
  farside bench --engine reference --option buckets=20000 --workload a
  farside bench --engine reference --option buckets=20000 --clients 2 --depth 8 --seconds 0.2
  farside bench --engine reference --option buckets=20000 --fabric sim --clients 64 --compute-nodes 4 --ops 50000
  farside bench --engine raw --option records=100000 --workload b --json)";

constexpr const char* kCheckFooter =
    R"(Each seed is a run of several clients on one table in the simulator, which reorders, tears and
delays whatever it is allowed to. --crash adds runs in which clients die, sleep and lose answers:
by chance, and then at every single verb. Every history is checked for linearizability. A violation
is shown with the few operations that prove it and with the command that replays it.

RUN is 17 (seed 17), 17:faults (with faults by chance) or 17:12:crash-after (a fault at verb 12; also
crash-before, crash-mid, lose-completion, sleep-before, sleep-after) or, for engines that survive power
cuts, 17:12:power-cut (after step 12 of the handlers at the nodes).

Examples:
  farside check --engine reference --seeds 1000 --crash
  farside check --engine reference --clients 6 --ops 20 --option buckets=1
  farside check --engine reference --replay 17:12:crash-after)";

constexpr const char* kCompletionFooter =
    R"(Prints a script by which the shell completes commands, options, engines and experiments. An install has
it where the shell looks for it; this is for a binary that was not installed, and for ~/.bashrc or
~/.zshrc.

Examples:
  farside completion bash
  farside completion zsh)";

constexpr const char* kDoctorFooter =
    R"(Backends are tried, not guessed: a small table is made, written and read on each. What could be better
comes with its fix.

Examples:
  farside doctor
  farside doctor --json)";

constexpr const char* kDemoFooter =
    R"(A table and what its operations cost, a table that grows, the engines side by side, a client that dies,
and a search for bugs. Takes a few seconds and needs no set-up. Exits with 1 if the search finds a
violation.

Example:
  farside demo)";

constexpr const char* kFsckFooter =
    R"(Walks every table of the pool and looks at every byte outside of them: what is leaked, reachable from
two tables or damaged is a line with advice, followed by where the bytes are. Nothing is changed. Exits
with 1 if anything is leaked or damaged, or a table could not be walked, and with 3 if the pool cannot
be opened.

URL is file:PATH, shm:NAME or tcp://HOST:PORT while no other client uses it, or embedded: for a pool that is
made for the check.

Examples:
  farside fsck file:pool.farside
  farside fsck --json file:pool.farside)";

constexpr const char* kPaperFooter =
    R"(NAME is an experiment, such as shard-table3, or 'list'. Each of them measures what a paper reports, and
says what the paper has, what we have, the rule that our figure must keep, and whether it does. Counts
come from the fabric's counters, times from the simulated cluster; so figures do not depend on the
machine. Exits with 1 if a rule is broken.

Examples:
  farside paper list
  farside paper shard-levels
  farside paper shard-table4 --json
  farside paper shard-figure18 --scale 50)";

constexpr const char* kTableFooter =
    R"(URL is file:PATH, or 'file:PATH?size=1GiB' for a file that is made if it does not exist (quoted, since
shells interpret '?'), or embedded: for a pool that is gone when the command has ended.

Examples:
  farside table create 'file:pool.farside?size=64MiB' users --engine reference --option buckets=64
  farside table list file:pool.farside
  farside table show file:pool.farside users
  farside table drop file:pool.farside users)";

constexpr const char* kTableCreateFooter =
    R"(A pool that does not exist is made if the URL has a size. If the table is there already, with this
engine and these options, nothing is done; with others it is an error. If there is no room, nothing is
changed.

Examples:
  farside table create 'file:pool.farside?size=64MiB' users --engine reference --option buckets=64
  farside table create file:pool.farside sessions --engine reference)";

constexpr const char* kTableListFooter =
    R"(Examples:
  farside table list file:pool.farside
  farside table list --json file:pool.farside)";

constexpr const char* kTableShowFooter =
    R"(Walks the table to count its keys and its bytes.

Examples:
  farside table show file:pool.farside users
  farside table show --json file:pool.farside users)";

constexpr const char* kTableDropFooter =
    R"(Frees every byte of the table. There is no way back, and no question is asked.

Example:
  farside table drop file:pool.farside users)";

constexpr uint64_t kMostSeeds = 1'000'000'000;
constexpr uint64_t kMostRecords = 1'000'000'000;
constexpr uint64_t kMostOperations = 1'000'000'000'000;
constexpr double kMostSeconds = 86400;
constexpr uint64_t kLastFirstSeed = 1'000'000'000'000'000'000;

void ReadRun(const std::string& text, CheckCommand& command) {
  const Result<check::RunName> run = check::RunName::Parse(text);
  if (!run.ok()) Complain("--replay", fmt::format("'{}': {}", Escape(text), run.error().message()));
  command.replay = *run;
}

CLI::App* AddBench(CLI::App& app, BenchCommand& command) {
  CLI::App* bench =
      app.add_subcommand("bench", "Measure an engine: throughput, latency, round trips, memory");
  bench->footer(kBenchFooter);
  AddEngine(*bench, command.engine, "The engine to measure");
  AddEngineOptions(*bench, command.options);
  AddText(*bench, "--workload", command.workload, "NAME",
          "load, a, b, c, d, e or f; by default c; e needs an ordered engine");
  AddText(*bench, "--distribution", command.distribution, "NAME",
          "Which records are used: uniform, zipfian or latest; by default that of the workload");
  AddText(*bench, "--fabric", command.fabric, "NAME",
          "embedded, shm, tcp or sim; by default embedded; shm and tcp start a memory node of their own");
  AddText(*bench, "--url", command.url, "URL",
          "a pool that is there, instead of --fabric: shm:NAME or tcp://HOST:PORT");
  AddNumber(*bench, "--nodes", command.nodes, 1, 64, "Memory nodes");
  AddNumber(*bench, "--compute-nodes", command.compute_nodes, 1, 256,
            "Machines that the clients of sim share");
  AddNumber(*bench, "--records", command.records, 1, kMostRecords, "Records that are loaded");
  AddNumber(*bench, "--ops", command.ops, 1, kMostOperations, "Operations of the run, over all clients");
  AddSeconds(*bench, "--seconds", command.seconds, kMostSeconds, "How long the run is, instead of --ops");
  AddNumber(*bench, "--warmup", command.warmup, 0, kMostOperations, "Operations before the run");
  AddNumber(*bench, "--clients", command.clients, 1, 1024, "Clients");
  AddNumber(*bench, "--depth", command.depth, 1, 1024, "Operations of each client in flight");
  AddNumber(*bench, "--key-size", command.key_size, 8, 1024, "Bytes of a key");
  AddNumber(*bench, "--value-size", command.value_size, 0, 1 << 20, "Bytes of a value");
  AddNumber(*bench, "--seed", command.seed, 0, kLastFirstSeed, "Decides keys and operations");
  AddText(*bench, "--size", command.size, "SIZE",
          "The region of each node, such as 4GiB; by default as much as it takes");
  AddFlag(*bench, "--no-raw", command.no_raw, "Do not run the workload on raw for comparison");
  AddFlag(*bench, "--json", command.json, "Print one JSON object");
  return bench;
}

CLI::App* AddCheck(CLI::App& app, CheckCommand& command, bool with_mutants) {
  CLI::App* check = app.add_subcommand("check", "Search simulated runs of an engine for wrong histories");
  check->footer(kCheckFooter);
  check::CampaignOptions& campaign = command.campaign;
  AddEngine(*check, command.engine, "The engine to check");
  AddNumber(*check, "--seeds", campaign.seeds, 1, kMostSeeds, "How many seeds");
  AddNumber(*check, "--first-seed", campaign.first_seed, 0, kLastFirstSeed, "The first of them");
  AddNumber(*check, "--clients", campaign.shape.clients, 1, 64, "Clients of a run");
  AddNumber(*check, "--ops", campaign.shape.operations, 1, 1000, "Operations of each client");
  AddNumber(*check, "--keys", campaign.shape.keys, 1, 12, "Keys that they share");
  AddFlag(*check, "--crash", campaign.crash,
          "Also let clients die, sleep and lose answers, by chance and at every verb");
  check
      ->add_option_function<std::string>(
          "--replay", [&command](const std::string& text) { ReadRun(text, command); },
          "Run this one run again and show it; see below")
      ->option_text("RUN")
      ->take_last();
  AddEngineOptions(*check, command.options);
  AddFlag(*check, "--trace", command.trace, "Show every verb of the first violation; a replay always does");
  AddFlag(*check, "--json", command.json,
          "Print one JSON object; with --trace, its field \"trace\" has the verbs");
  if (with_mutants) {
    check->add_option("--mutant", command.mutant, "The planted bug to switch on")->group("")->take_last();
  }
  return check;
}

CLI::App* AddFsck(CLI::App& app, FsckCommand& command) {
  CLI::App* fsck =
      app.add_subcommand("fsck", "Check a pool: what every byte of it is, and what is wrong with it");
  fsck->footer(kFsckFooter);
  AddUrl(*fsck, command.url);
  AddFlag(*fsck, "--json", command.json, "Print one JSON object");
  return fsck;
}

CLI::App* AddPaper(CLI::App& app, PaperCommand& command) {
  CLI::App* paper = app.add_subcommand("paper", "Compare what the papers report with what we measure");
  paper->footer(kPaperFooter);
  AddOperand(*paper, "NAME", command.name, "The experiment, or 'list'");
  AddNumber(*paper, "--scale", command.percent, 1, 10'000, "The size, in percent of the usual one");
  AddFlag(*paper, "--full", command.full, "The size that the claim speaks of, however long it takes");
  AddFlag(*paper, "--json", command.json, "Print one JSON object");
  return paper;
}

CLI::App* AddTableVerb(CLI::App& table, const char* name, const char* about, const char* footer,
                       TableCommand& command) {
  CLI::App* verb = table.add_subcommand(name, about);
  verb->footer(footer);
  verb->group("Commands");
  AddUrl(*verb, command.url);
  if (command.verb != TableCommand::Verb::kList) AddOperand(*verb, "NAME", command.name, "The table");
  AddFlag(*verb, "--json", command.json, "Print one JSON object");
  return verb;
}

std::string Commands(const CLI::App& app) {
  std::string names;
  for (const CLI::App* command : app.get_subcommands({})) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", command->get_name());
  }
  return names;
}

std::string NoSuch(std::string_view what, const std::string& text) {
  return fmt::format("there is no {} '{}'", what, Escape(text));
}

// The library's "--engine: 1 required TEXT missing" and "--json was given a disallowed flag override".
std::string InOurWords(const std::string& mismatch) {
  const size_t begin = mismatch.find_first_not_of('-');  // it names a flag without its dashes
  return "--" + mismatch.substr(begin, mismatch.find_first_of(": ") - begin) +
         (mismatch.find("flag override") == std::string::npos ? " needs a value" : " takes no value");
}

// Arguments that no option took.
std::string Unexpected(const CLI::App& app, const std::string& text) {
  if (text.starts_with('-')) return NoSuch("option", text);
  if (app.get_subcommands({}).empty()) return fmt::format("'{}' is one word too many", Escape(text));
  return fmt::format("{}; there is: {}", NoSuch("command", text), Commands(app));
}

// All that can be asked for, and the library's view of it.
class Parser {
 public:
  Parser(const std::string& program, bool with_mutants) : app_("Key-value tables in far memory", "farside") {
    check_.program = program;
    demo_.program = program;
    app_.formatter(std::make_shared<HelpFormatter>());
    app_.set_help_flag("-h,--help", "Print this help");
    app_.set_version_flag("--version", fmt::format("farside {} (commit {})", Version(), Commit()),
                          "Print the version");
    app_.footer(kFarsideFooter);
    app_.require_subcommand(0, 1);
    app_.get_formatter()->label("Subcommands", "Commands");
    app_.allow_extras();  // inherited by the commands; Interpret complains about them in one line

    bench_app_ = AddBench(app_, bench_);
    check_app_ = AddCheck(app_, check_, with_mutants);
    AddCompletion();
    Offer(AddDel(app_, del_), [this] { return del_; });
    demo_app_ = app_.add_subcommand("demo", "Show Farside at work");
    demo_app_->footer(kDemoFooter);
    doctor_app_ = app_.add_subcommand("doctor", "Say what this machine can do, and how it could do more");
    doctor_app_->footer(kDoctorFooter);
    AddFlag(*doctor_app_, "--json", doctor_.json, "Print one JSON object");
    Offer(AddExport(app_, export_), [this] { return export_; });
    fsck_app_ = AddFsck(app_, fsck_);
    Offer(AddGet(app_, get_), [this] { return get_; });
    help_app_ = app_.add_subcommand("help", "Print the help of a command");
    help_app_->add_option("COMMAND", help_topic_, "The command; without one, this program")
        ->option_text(" ")
        ->expected(0, 2);
    help_app_->footer("Example:\n  farside help check");
    Offer(AddImport(app_, import_), [this] { return UnlessBad(import_, ProblemOfMaking(import_)); });
    paper_app_ = AddPaper(app_, paper_);
    Offer(AddPut(app_, put_), [this] { return UnlessBad(put_, ProblemOfMaking(put_)); });
    Offer(AddScan(app_, scan_), [this] { return scan_; });
    Offer(AddServe(app_, serve_), [this] { return serve_; });
    Offer(AddStatus(app_, status_), [this] { return status_; });
    AddTable();
    for (CLI::App* command : app_.get_subcommands({})) command->group("Commands");
  }

  CommandLine Parse(int argc, const char* const* argv) {
    try {
      app_.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
      return Answer{app_.help()};
    } catch (const CLI::CallForVersion& version) {
      return Answer{fmt::format("{}\n", version.what())};
    } catch (const CLI::ArgumentMismatch& mismatch) {
      return Bad(InOurWords(mismatch.what()));
    } catch (const CLI::RequiredError& missing) {
      const std::string text = missing.what();  // "URL is required"
      const std::string operand = text.substr(0, text.find(' '));
      return Bad(operand + " is missing" + UrlHint(operand));
    } catch (const CLI::ValidationError& complaint) {
      return Bad(complaint.what());
    } catch (const CLI::ParseError& error) {
      return Bad(Escape(error.what()));
    }
    return Interpret();
  }

  // What to do about an operand that is missing, if the URL was left out and FARSIDE_URL is not set.
  std::string UrlHint(std::string_view operand) const {
    if (operand == "URL") return "; give it, or set FARSIDE_URL";
    const CLI::Option* const url = Chosen().get_option_no_throw("URL");
    if (url == nullptr || url->empty() || pool::HasUrlScheme(url->results().front())) return "";
    return fmt::format("; '{}' stands where the URL belongs: give the URL, or set FARSIDE_URL",
                       Escape(url->results().front()));
  }

  // Of the words that were parsed: the place where a URL belongs, if the command that they name takes one and
  // the first operand is none. It is right behind the name of the command.
  std::optional<size_t> PlaceOfMissingUrl(std::span<const char* const> words) const {
    const CLI::App& chosen = Chosen();
    const CLI::Option* const url = chosen.get_option_no_throw("URL");
    if (url == nullptr || (!url->empty() && pool::HasUrlScheme(url->results().front()))) return std::nullopt;
    const auto name = std::ranges::find(words.subspan(1), chosen.get_name(),
                                        [](const char* word) { return std::string_view(word); });
    return static_cast<size_t>(name - words.subspan(1).begin()) + 2;
  }

  BadUsage Bad(std::string why) const { return {FullName(Chosen()), std::move(why)}; }

 private:
  // What a command that was chosen becomes.
  void Offer(const CLI::App* command, std::function<CommandLine()> interpret) {
    offered_[command] = std::move(interpret);
  }
  CommandLine UnlessBad(CommandLine command, std::string problem) const {
    if (!problem.empty()) return Bad(std::move(problem));
    return command;
  }

  void AddCompletion() {
    CLI::App* const completion = app_.add_subcommand("completion", "Print the completion script of a shell");
    completion->footer(kCompletionFooter);
    AddOperand(*completion, "SHELL", shell_, fmt::format("{}", fmt::join(kCompletionShells, " or ")));
    Offer(completion, [this]() -> CommandLine {
      if (std::ranges::find(kCompletionShells, shell_) == kCompletionShells.end())
        return Bad(fmt::format("{}; there is: {}", NoSuch("completion for", shell_),
                               fmt::join(kCompletionShells, ", ")));
      return Answer{CompletionScript(shell_, app_)};
    });
  }

  void AddTable() {
    table_app_ = app_.add_subcommand("table", "Make, list, show and drop the tables of a pool");
    table_app_->footer(kTableFooter);
    table_app_->require_subcommand(0, 1);
    table_app_->get_formatter()->label("Subcommands", "Commands");
    create_.verb = TableCommand::Verb::kCreate;
    list_.verb = TableCommand::Verb::kList;
    show_.verb = TableCommand::Verb::kShow;
    drop_.verb = TableCommand::Verb::kDrop;
    create_app_ = AddTableVerb(*table_app_, "create", "Make a table", kTableCreateFooter, create_);
    AddEngine(*create_app_, create_.engine, "The engine of the table");
    AddEngineOptions(*create_app_, create_.options);
    list_app_ = AddTableVerb(*table_app_, "list", "List the tables", kTableListFooter, list_);
    show_app_ = AddTableVerb(*table_app_, "show", "Show a table: its engine, its options, its size",
                             kTableShowFooter, show_);
    drop_app_ = AddTableVerb(*table_app_, "drop", "Drop a table", kTableDropFooter, drop_);
  }

  // The innermost command that was named, or the program.
  const CLI::App& Chosen() const {
    const CLI::App* chosen = &app_;
    while (!chosen->get_subcommands().empty()) chosen = chosen->get_subcommands().front();
    return *chosen;
  }

  static std::string FullName(const CLI::App& app) {
    return app.get_parent() == nullptr ? "farside" : FullName(*app.get_parent()) + " " + app.get_name();
  }

  CommandLine Interpret() const {
    const CLI::App* chosen = &Chosen();
    std::vector<std::string> extras = app_.remaining(/*recurse=*/true);
    std::erase(extras, "--");  // stands before operands that begin with a dash
    if (!extras.empty()) return Bad(Unexpected(*chosen, extras.front()));
    if (chosen == &app_) return NothingAsked{app_.help()};
    if (const auto offered = offered_.find(chosen); offered != offered_.end()) return offered->second();
    if (chosen == bench_app_) return InterpretBench();
    if (chosen == check_app_) return InterpretCheck();
    if (chosen == doctor_app_) return doctor_;
    if (chosen == demo_app_) return demo_;
    if (chosen == fsck_app_) return fsck_;
    if (chosen == paper_app_) return paper_;
    if (chosen == table_app_) return NothingAsked{table_app_->help("farside")};
    if (chosen == create_app_) return InterpretCreate();
    if (chosen == list_app_) return list_;
    if (chosen == show_app_) return show_;
    if (chosen == drop_app_) return drop_;
    return InterpretHelp();
  }

  CommandLine InterpretCreate() const {
    if (create_.engine.empty())
      return Bad(fmt::format("--engine is missing; there is: {}", store::EngineNames()));
    return create_;
  }

  CommandLine InterpretBench() const {
    if (bench_.engine.empty())
      return Bad(fmt::format("--engine is missing; there is: {}", store::AllEngineNames()));
    return bench_;
  }

  CommandLine InterpretCheck() const {
    if (check_.engine.empty())
      return Bad(fmt::format("--engine is missing; there is: {}", store::EngineNames()));
    return check_;
  }

  CommandLine InterpretHelp() const {
    const CLI::App* topic = &app_;
    for (const std::string& word : help_topic_) {
      const std::vector<const CLI::App*> commands = topic->get_subcommands({});
      const auto named = std::find_if(commands.begin(), commands.end(), [&word](const CLI::App* command) {
        return command->get_name() == word;
      });
      if (named == commands.end()) return Bad(Unexpected(*topic, word));
      topic = *named;
    }
    if (topic == &app_) {
      return Answer{app_.get_formatter()->make_help(&app_, "farside", CLI::AppFormatMode::Normal)};
    }
    const std::string name = FullName(*topic);
    return Answer{topic->help(name.substr(0, name.rfind(' ')))};
  }

  CLI::App app_;
  CLI::App* bench_app_ = nullptr;
  CLI::App* check_app_ = nullptr;
  CLI::App* demo_app_ = nullptr;
  CLI::App* doctor_app_ = nullptr;
  CLI::App* help_app_ = nullptr;
  CLI::App* fsck_app_ = nullptr;
  CLI::App* paper_app_ = nullptr;
  CLI::App* table_app_ = nullptr;
  CLI::App* create_app_ = nullptr;
  CLI::App* list_app_ = nullptr;
  CLI::App* show_app_ = nullptr;
  CLI::App* drop_app_ = nullptr;
  std::map<const CLI::App*, std::function<CommandLine()>> offered_;
  BenchCommand bench_;
  CheckCommand check_;
  DelCommand del_;
  DemoCommand demo_;
  DoctorCommand doctor_;
  ExportCommand export_;
  FsckCommand fsck_;
  GetCommand get_;
  ImportCommand import_;
  PaperCommand paper_;
  PutCommand put_;
  ScanCommand scan_;
  StatusCommand status_;
  ServeCommand serve_;
  TableCommand create_;
  TableCommand list_;
  TableCommand show_;
  TableCommand drop_;
  std::vector<std::string> help_topic_;
  std::string shell_;
};

}  // namespace

CommandLine ParseCommandLine(int argc, const char* const* argv, bool with_mutants) {
  const std::string program = argc > 0 ? argv[0] : "farside";
  Parser parser(program, with_mutants);
  const CommandLine line = parser.Parse(argc, argv);
  const char* const url = std::getenv("FARSIDE_URL");
  const bool is_help = std::holds_alternative<Answer>(line);  // which a wrong URL does not keep from anyone
  if (url == nullptr || *url == '\0' || is_help) return line;
  std::vector<const char*> words(argv, argv + argc);
  const std::optional<size_t> place = parser.PlaceOfMissingUrl(words);
  if (!place.has_value()) return line;
  if (!pool::HasUrlScheme(url))
    return parser.Bad(fmt::format("FARSIDE_URL: {}", pool::ParseUrl(url).error().message()));
  words.insert(words.begin() + static_cast<std::ptrdiff_t>(*place), url);
  return Parser(program, with_mutants).Parse(static_cast<int>(words.size()), words.data());
}

}  // namespace farside::tools
