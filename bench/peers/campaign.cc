#include "bench/peers/campaign.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "bench/peers/others_load.h"

namespace farside::peers {
namespace {

constexpr double kTrial = 0.3;  // of a run: how long a manner is tried, and how often
constexpr int kTrials = 2;
constexpr double kWarmUp = 1.0;  // of a run

Error Of(const System& system, const Error& error) {
  return Error(error.code(), fmt::format("{}: {}", system.name(), error.message()));
}

// A system with the connections that its clients use, which stay for all runs: what they remember stays too.
struct Team {
  System* system = nullptr;
  std::vector<std::unique_ptr<Connection>> connections;
};

class Campaign {
 public:
  Campaign(const CampaignOptions& options, Interrupt& interrupt, const Progress& progress, size_t systems)
      : options_(options), interrupt_(interrupt), progress_(progress) {
    const size_t cells = 2 * options.clients.size() * options.depths.size();
    steps_ = systems + cells * (options.rounds + 1);
  }

  Result<Results> Run(const std::vector<std::unique_ptr<System>>& systems) {
    for (const std::unique_ptr<System>& system : systems) {
      if (Status prepared = Prepare(*system); !prepared.ok()) return prepared.error();
    }
    // All reads first: writes empty the caches that clients have.
    for (const Operation operation : {Operation::kGet, Operation::kSet}) {
      for (const size_t clients : options_.clients) {
        for (const size_t depth : options_.depths) {
          Cell cell{.operation = operation, .clients = clients, .depth = depth};
          if (Status ran = RunCell(cell); !ran.ok()) return ran.error();
          results_.cells.push_back(std::move(cell));
        }
      }
    }
    return std::move(results_);
  }

 private:
  Status Prepare(System& system) {
    Step(fmt::format("loading {}", system.name()));
    Result<std::string> version = system.Version();
    if (!version.ok()) return Of(system, version.error());
    if (system.is_farside() && !results_.base.has_value()) results_.base = teams_.size();
    results_.systems.push_back({system.name(), std::move(*version)});
    Team team{&system, {}};
    const size_t depth =
        std::max(kLoadDepth, *std::max_element(options_.depths.begin(), options_.depths.end()));
    const size_t clients = *std::max_element(options_.clients.begin(), options_.clients.end());
    for (size_t client = 0; client < clients; ++client) {
      Result<std::unique_ptr<Connection>> connection = system.Connect(depth, options_.value_size);
      if (!connection.ok()) return Of(system, connection.error());
      team.connections.push_back(std::move(*connection));
    }
    const Manner manner = system.Manners(Operation::kSet).front();
    const auto on_all = [&](Operation operation, Connection& connection) {
      return PerformOnAll(operation, connection, manner, options_.records, options_.value_size, interrupt_);
    };
    if (Status loaded = on_all(Operation::kSet, *team.connections.front()); !loaded.ok())
      return Of(system, loaded.error());
    for (const std::unique_ptr<Connection>& connection : team.connections) {
      if (!system.remembers()) break;
      if (Status read = on_all(Operation::kGet, *connection); !read.ok()) return Of(system, read.error());
    }
    teams_.push_back(std::move(team));
    return OkStatus();
  }

  Status RunCell(Cell& cell) {
    Step(fmt::format("warming up {}", Describe(cell)));
    std::vector<Manner> manners;
    for (size_t i = 0; i < teams_.size(); ++i) {
      Result<Manner> manner = FastestManner(teams_[i], cell);
      if (!manner.ok()) return manner.error();
      const Result<Figures> warm = RunOnce(teams_[i], cell, *manner, kWarmUp, 0);
      if (!warm.ok()) return warm.error();
      cell.entries.push_back({.system = i, .manner = manner->name});
      manners.push_back(std::move(*manner));
    }
    for (size_t round = 0; round < options_.rounds; ++round) {
      Step(Describe(cell));
      for (size_t turn = 0; turn < teams_.size(); ++turn) {
        const size_t i = (round + turn) % teams_.size();
        const Result<Figures> figures = RunOnce(teams_[i], cell, manners[i], 1.0, round + 1);
        if (!figures.ok()) return figures.error();
        cell.entries[i].rounds.push_back(*figures);
      }
    }
    return OkStatus();
  }

  // Each is tried more than once, in turns, and its best trial counts.
  Result<Manner> FastestManner(const Team& team, const Cell& cell) {
    std::vector<Manner> manners = team.system->Manners(cell.operation);
    if (manners.size() == 1) return manners.front();
    double best = -1;
    size_t fastest = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      for (size_t i = 0; i < manners.size(); ++i) {
        const Result<Figures> figures = RunOnce(team, cell, manners[i], kTrial, 0);
        if (!figures.ok()) return figures.error();
        if (figures->ops_per_second <= best) continue;
        best = figures->ops_per_second;
        fastest = i;
      }
    }
    return manners[fastest];
  }

  Result<Figures> RunOnce(const Team& team, const Cell& cell, const Manner& manner, double share,
                          uint64_t round) {
    RunPlan plan;
    plan.operation = cell.operation;
    plan.depth = cell.depth;
    plan.value_size = options_.value_size;
    plan.records = options_.records;
    plan.seed = Random(options_.seed).Fork(round).seed();
    plan.duration =
        std::chrono::duration_cast<Nanos>(std::chrono::duration<double>(options_.seconds * share));
    const auto connections = std::span(team.connections).first(cell.clients);
    Result<Figures> figures = Measure(connections, plan, manner, interrupt_);
    if (!figures.ok()) return Of(*team.system, figures.error());
    return figures;
  }

  static std::string Describe(const Cell& cell) {
    return fmt::format("{}, clients {}, depth {}", Name(cell.operation), cell.clients, cell.depth);
  }

  void Step(std::string_view what) { progress_(what, done_++, steps_); }

  const CampaignOptions& options_;
  Interrupt& interrupt_;
  const Progress& progress_;
  std::vector<Team> teams_;
  Results results_;
  uint64_t done_ = 0;
  uint64_t steps_ = 0;
};

}  // namespace

Result<Results> RunCampaign(const std::vector<std::unique_ptr<System>>& systems,
                            const CampaignOptions& options, Interrupt& interrupt, const Progress& progress) {
  std::vector<pid_t> ours = {::getpid()};
  for (const std::unique_ptr<System>& system : systems) {
    const std::optional<pid_t> daemon = system->daemon();
    if (daemon.has_value() && std::find(ours.begin(), ours.end(), *daemon) == ours.end())
      ours.push_back(*daemon);
  }
  const OthersLoad others(ours);
  Result<Results> results = Campaign(options, interrupt, progress, systems.size()).Run(systems);
  if (!results.ok()) return results;
  results->setting = ReadSetting();
  results->setting.records = options.records;
  results->setting.value_size = options.value_size;
  results->setting.rounds = options.rounds;
  results->setting.seconds = options.seconds;
  results->setting.taken_by_others = others.Share();
  return results;
}

}  // namespace farside::peers
