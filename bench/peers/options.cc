#include "bench/peers/options.h"

#include <charconv>
#include <filesystem>
#include <limits>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

namespace farside::peers {
namespace {

constexpr uint64_t kMostClients = 256;
constexpr uint64_t kMostDepth = 1024;
constexpr uint64_t kMostRecordsHere = 1'000'000'000;
constexpr uint64_t kMostValueBytes = uint64_t{1} << 20;  // memcached takes no larger ones by default
constexpr double kMostSeconds = 3600;

constexpr const char* kFooter =
    R"(A SYSTEM is farside:URL, farside:served:tcp, farside:served:shm (from `farside serve`, started for
this), farside+cache:... (the same with a location cache), redis:tcp, redis:unix, memcached:tcp:THREADS
or memcached:unix:THREADS. Servers are started for the benchmark and ended with it.

Examples:
  farside_peers --rounds 3 --seconds 0.2
  farside_peers --system farside:embedded: --system redis:unix --depth 1,64 --clients 1
  farside_peers --idle)";

// What is measured if nothing is said.
constexpr const char* kDefaultSystems[] = {"farside:served:shm", "farside+cache:served:shm",
                                           "farside:served:tcp", "farside+cache:served:tcp",
                                           "farside:embedded:",  "redis:tcp",
                                           "redis:unix",         "memcached:tcp:1",
                                           "memcached:unix:1",   "memcached:tcp:4"};

bool ParseWhole(std::string_view text, uint64_t low, uint64_t high, uint64_t& number) {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  return failure == std::errc() && end == text.data() + text.size() && number >= low && number <= high;
}

// Collects the first thing that is wrong.
class Reader {
 public:
  uint64_t Whole(std::string_view option, const std::string& text, uint64_t low, uint64_t high) {
    uint64_t number = low;
    if (!ParseWhole(text, low, high, number)) {
      Wrong(fmt::format("{}: '{}' is not a whole number from {} to {}", option, text, low, high));
    }
    return number;
  }

  std::vector<size_t> List(std::string_view option, const std::string& text, uint64_t high) {
    std::vector<size_t> numbers;
    std::string_view rest = text;
    while (true) {
      const size_t comma = rest.find(',');
      uint64_t number = 0;
      if (!ParseWhole(rest.substr(0, comma), 1, high, number)) {
        Wrong(fmt::format("{}: '{}' is not a list of whole numbers from 1 to {}, as in 1,8", option, text,
                          high));
        return {1};
      }
      numbers.push_back(number);
      if (comma == std::string_view::npos) return numbers;
      rest.remove_prefix(comma + 1);
    }
  }

  double Seconds(std::string_view option, const std::string& text) {
    double number = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (failure != std::errc() || end != text.data() + text.size() || !(number > 0) ||
        number > kMostSeconds) {
      Wrong(fmt::format("{}: '{}' is no number of seconds, as in 0.5", option, text));
    }
    return number;
  }

  void Wrong(std::string why) {
    if (why_.empty()) why_ = std::move(why);
  }
  const std::string& why() const { return why_; }

 private:
  std::string why_;
};

// The words, not yet understood.
struct Words {
  std::string records = "1000000";
  std::string value_size = "64";
  std::string clients = "1,4";
  std::string depth = "1,32,64";
  std::string rounds = "5";
  std::string seconds = "0.5";
  std::string seed = "1";
  std::vector<std::string> systems;
  std::string program;
  std::string folder;
  bool json = false;
  bool idle = false;
  std::string idle_seconds = "10";
  std::string connections = "100";
};

void Declare(CLI::App& app, Words& words) {
  const auto add = [&](const char* name, std::string& value, const char* what, const char* type) {
    app.add_option(name, value, what)
        ->capture_default_str()
        ->type_name(type)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  };
  add("--records", words.records, "records that every system holds", "N");
  add("--value-size", words.value_size, "bytes of a value; keys have 8", "N");
  add("--clients", words.clients, "numbers of clients, each a thread with a connection", "LIST");
  add("--depth", words.depth, "operations that a client asks for together", "LIST");
  add("--rounds", words.rounds, "runs of every system; medians are shown", "N");
  add("--seconds", words.seconds, "of each run", "S");
  add("--seed", words.seed, "decides keys and values", "N");
  app.add_option("--system", words.systems, "what is measured; may be repeated")
      ->type_name("SYSTEM")
      ->allow_extra_args(false);
  add("--farside", words.program, "the binary that serves; default: the one beside this program", "PATH");
  add("--out", words.folder, "a folder for peers.svg and peers.json", "FOLDER");
  app.add_flag("--json", words.json, "print one JSON object instead of a table");
  app.add_flag("--idle", words.idle, "measure what idle servers cost instead");
  add("--idle-seconds", words.idle_seconds, "how long, with --idle", "S");
  add("--connections", words.connections, "to each server, with --idle", "N");
}

PeersCommand Understand(const Words& words, Reader& reader) {
  PeersCommand command;
  CampaignOptions& campaign = command.campaign;
  campaign.records = reader.Whole("--records", words.records, 1, kMostRecordsHere);
  campaign.value_size = reader.Whole("--value-size", words.value_size, 1, kMostValueBytes);
  campaign.clients = reader.List("--clients", words.clients, kMostClients);
  campaign.depths = reader.List("--depth", words.depth, kMostDepth);
  campaign.rounds = reader.Whole("--rounds", words.rounds, 1, 1000);
  campaign.seconds = reader.Seconds("--seconds", words.seconds);
  campaign.seed = reader.Whole("--seed", words.seed, 0, std::numeric_limits<uint64_t>::max());
  command.idle_seconds = reader.Seconds("--idle-seconds", words.idle_seconds);
  command.idle_connections = reader.Whole("--connections", words.connections, 1, 1000);
  command.farside_program = words.program;
  command.folder = words.folder;
  command.json = words.json;
  command.idle = words.idle;
  std::vector<std::string> systems = words.systems;
  if (systems.empty()) systems.assign(std::begin(kDefaultSystems), std::end(kDefaultSystems));
  for (const std::string& system : systems) {
    Result<SystemSpec> spec = ParseSpec(system);
    if (spec.ok()) {
      command.specs.push_back(std::move(*spec));
    } else {
      reader.Wrong("--system: " + spec.error().message());
    }
  }
  return command;
}

std::string BesideThisProgram(std::string_view name) {
  std::error_code failure;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", failure);
  return failure ? std::string(name) : (self.parent_path() / name).string();
}

}  // namespace

std::variant<PeersCommand, HelpText, UsageError> ParseOptions(int argc, const char* const* argv) {
  CLI::App app("Farside beside redis and memcached: the same records, clients and batches, in turns.",
               "farside_peers");
  app.footer(kFooter);
  Words words;
  Declare(app, words);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return HelpText{app.help()};
  } catch (const CLI::ParseError& error) {
    return UsageError{error.what()};
  }
  Reader reader;
  PeersCommand command = Understand(words, reader);
  if (!reader.why().empty()) return UsageError{reader.why()};
  if (command.farside_program.empty()) command.farside_program = BesideThisProgram("farside");
  return command;
}

}  // namespace farside::peers
