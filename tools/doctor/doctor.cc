#include "tools/doctor/doctor.h"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/log.h"
#include "fabric/memory/region.h"
#include "fabric/memory/served_node.h"
#include "fabric/op.h"
#include "fabric/run.h"
#include "fabric/shm/server.h"
#include "fabric/shm/shared_memory.h"
#include "fabric/shm/shm.h"
#include "fabric/sim/sim.h"
#include "fabric/tcp/server.h"
#include "fabric/tcp/tcp.h"
#include "pool/region/open.h"
#include "pool/region/pool_region.h"
#include "pool/region/superblock.h"
#include "store/engines.h"
#include "store/registration.h"
#include "tools/common/output.h"
#include "tools/common/terminal.h"
#include "tools/json.h"

namespace farside::tools {
namespace {

using fabric::Client;
using fabric::Fabric;
using fabric::Op;
using fabric::OpKind;

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr uint64_t kLittleMemory = 512 * kMiB;
constexpr uint64_t kEnoughMemlock = 1 * kGiB;

// ---- backends ----------------------------------------------------------------------------------------

Task<Done> PutAndGet(Client& client) {
  Op op(client, OpKind::kMaintenance);
  const std::unique_ptr<store::Registration> session =
      co_await store::Registration::Join(op, client, store::MakeEngine, {});
  {
    const std::string engine(store::DefaultEngine());
    const index::OpenTable table = co_await session->tables().CreateOrOpen(op, "doctor", engine, {});
    Op put(client, OpKind::kInsert);
    co_await table.index->Put(put, "doctor", "was here");
    Op get(client, OpKind::kSearch);
    std::string value;
    const bool found = co_await table.index->Get(get, "doctor", value);
    if (!found || value != "was here") {
      co_return Error(ErrorCode::kCorrupt, "a value that was put was not found again; please report this");
    }
  }
  co_await session->Leave(op);
  co_return Done{};
}

Status TryTable(Fabric& fabric) {
  Result<std::unique_ptr<Client>> client = fabric.Connect();
  if (!client.ok()) return client.error();
  return Run(**client, PutAndGet(**client));
}

Status TryEmbedded() {
  const Result<std::unique_ptr<pool::OpenedPool>> pool = pool::OpenPool("embedded:?size=1MiB", {});
  if (!pool.ok()) return pool.error();
  return TryTable(*(*pool)->fabric);
}

Status TrySim() {
  fabric::sim::SimFabric world({.region_bytes = {512 * 1024}});
  const Result<pool::Geometry> formatted =
      pool::FormatVolatile(world.memory(fabric::NodeId{0}), {.chunk_bytes = 4096}, {1, 2});
  if (!formatted.ok()) return formatted.error();
  return TryTable(world);
}

// A memory node in this process, with a pool in its memory, as `farside serve` would have it.
class DoctorsNode {
 public:
  static Result<std::unique_ptr<DoctorsNode>> Make() {
    Result<pool::PoolRegion> home = pool::MakeVolatile(
        kNodeBytes, {}, [](uint64_t bytes) { return fabric::memory::Region::Shareable(bytes); });
    if (!home.ok()) return home.error();
    Result<std::unique_ptr<fabric::shm::SharedMemory>> memory =
        fabric::shm::SharedMemory::Create(std::move(home->region), home->id);
    if (!memory.ok()) return memory.error();
    std::unique_ptr<DoctorsNode> made(new DoctorsNode());
    made->memory = std::move(*memory);
    made->node = std::make_unique<fabric::memory::ServedNode>(made->memory->region(), made->memory->stripes(),
                                                              made->memory->region_id());
    return made;
  }

  Logger log{LogLevel::kError};
  std::unique_ptr<fabric::shm::SharedMemory> memory;
  std::unique_ptr<fabric::memory::ServedNode> node;

 private:
  static constexpr uint64_t kNodeBytes = 1 * kMiB;
  DoctorsNode() = default;
};

Status TryShm() {
  const Result<std::unique_ptr<DoctorsNode>> node = DoctorsNode::Make();
  if (!node.ok()) return node.error();
  fabric::shm::ServerOptions options;
  options.node = fmt::format("doctor-{}", ::getpid());
  options.log = &(*node)->log;
  const auto server = fabric::shm::Server::Start(*(*node)->node, *(*node)->memory, options);
  if (!server.ok()) return server.error();
  fabric::shm::Options client;
  client.nodes = {options.node};
  const auto fabric = fabric::shm::ShmFabric::Open(client);
  if (!fabric.ok()) return fabric.error();
  return TryTable(**fabric);
}

Status TryTcp() {
  const Result<std::unique_ptr<DoctorsNode>> node = DoctorsNode::Make();
  if (!node.ok()) return node.error();
  const auto server = fabric::tcp::Server::Listen(*(*node)->node, {}, (*node)->log);
  if (!server.ok()) return server.error();
  fabric::tcp::Options client;
  client.addresses = {fmt::format("127.0.0.1:{}", (*server)->port())};
  const auto fabric = fabric::tcp::TcpFabric::Open(client);
  if (!fabric.ok()) return fabric.error();
  return TryTable(**fabric);
}

Backend BuiltBackend(std::string name, const Status& tried) {
  return {std::move(name), true, tried.ok(),
          tried.ok() ? "a table was made, written and read" : tried.error().ToString()};
}

Backend MissingBackend(std::string name) { return {std::move(name), false, false, "not in this version"}; }

// ---- findings ----------------------------------------------------------------------------------------

std::string Size(uint64_t bytes) {
  if (bytes >= kGiB) return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / static_cast<double>(kGiB));
  if (bytes >= kMiB) return fmt::format("{} MiB", bytes / kMiB);
  return fmt::format("{} KiB", bytes / 1024);
}

Diagnosis JudgeCores(const Machine& machine) {
  if (machine.cores > 1) return {fmt::format("{} cores", machine.cores)};
  return {"1 core: clients take turns on it", Severity::kNote,
          "let the process use more cores (taskset -c, or the container's CPU limit)"};
}

Diagnosis JudgeMemory(const Machine& machine) {
  if (!machine.memory_bytes.has_value() || !machine.available_bytes.has_value()) {
    return {"the kernel does not say how much memory there is", Severity::kNote,
            "make /proc/meminfo readable"};
  }
  const std::string what =
      fmt::format("{} of memory, {} available", Size(*machine.memory_bytes), Size(*machine.available_bytes));
  if (*machine.available_bytes >= kLittleMemory) return {what};
  return {what, Severity::kWarning, "end programs that use much memory, or keep tables small"};
}

Diagnosis JudgeGroupLimit(const Machine& machine) {
  const std::string limit = Size(*machine.group_limit_bytes);
  return {fmt::format("the control group of this process may use {} of memory", limit), Severity::kNote,
          "raise the memory limit of the container or of the service if tables need more"};
}

Diagnosis JudgeTransparentHugePages(const Machine& machine) {
  if (!machine.transparent_huge_pages.has_value()) {
    return {"the kernel has no transparent huge pages: large tables are slower", Severity::kNote,
            "use a kernel with CONFIG_TRANSPARENT_HUGEPAGE"};
  }
  const std::string what = fmt::format("transparent huge pages: {}", *machine.transparent_huge_pages);
  if (*machine.transparent_huge_pages != "never") return {what};
  return {what + ": large tables are slower", Severity::kWarning,
          "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled"};
}

// Memory nodes take huge pages that were set aside if there are enough. Otherwise they gather theirs, or do
// without.
Diagnosis JudgeHugePages(const Machine& machine) {
  if (machine.huge_pages.value_or(0) == 0) {
    if (machine.gathers_huge_pages)
      return {"no huge pages are set aside: memory nodes gather theirs while they fill"};
    return {"no huge pages are set aside: a memory node with much memory would be faster with them",
            Severity::kNote, "sudo sysctl vm.nr_hugepages=4096 sets 8 GiB aside for 'farside serve'"};
  }
  return {fmt::format("{} huge pages of {} are set aside, {} of them free, for 'farside serve'",
                      *machine.huge_pages, Size(machine.huge_page_bytes.value_or(0)),
                      machine.free_huge_pages.value_or(0))};
}

Diagnosis JudgeMemlock(const Machine& machine) {
  if (!machine.memlock_bytes.has_value()) return {"the limit of locked memory is not known", Severity::kNote};
  if (*machine.memlock_bytes == kUnlimited) return {"locked memory: no limit"};
  const std::string what = fmt::format("locked memory: up to {}", Size(*machine.memlock_bytes));
  if (*machine.memlock_bytes >= kEnoughMemlock) return {what};
  return {what + "; only RDMA needs more",
          machine.rdma_devices.empty() ? Severity::kNote : Severity::kWarning,
          "put '* - memlock unlimited' into /etc/security/limits.conf and log in anew"};
}

Diagnosis JudgeRdma(const Machine& machine) {
  if (machine.rdma_devices.empty()) return {"no RDMA device, and none is needed"};
  return {
      fmt::format("RDMA devices: {}; this version cannot use them", fmt::join(machine.rdma_devices, ", ")),
      Severity::kNote};
}

// ---- for people --------------------------------------------------------------------------------------

std::string Painted(Severity severity, const Paint& paint) {
  std::string padded = fmt::format("{:<9}", Name(severity));
  switch (severity) {
    case Severity::kOk: return paint.Green(padded);
    case Severity::kNote: return paint.Bold(padded);
    case Severity::kWarning: return paint.Yellow(padded);
  }
  return padded;
}

std::string Text(const DoctorReport& report, const Paint& paint) {
  std::string text = paint.Bold("Backends") + "\n";
  for (const Backend& backend : report.backends) {
    const std::string state =
        fmt::format("{:<9}", backend.usable ? "usable" : (backend.built ? "BROKEN" : "absent"));
    const std::string painted =
        backend.usable ? paint.Green(state) : (backend.built ? paint.Red(state) : paint.Dim(state));
    text += fmt::format("  {}{:<10}{}\n", painted, backend.name, backend.why);
  }
  text += "\n" + paint.Bold("This machine") + "\n";
  for (const Diagnosis& finding : report.findings) {
    text += fmt::format("  {}{}\n", Painted(finding.severity, paint), finding.what);
    if (!finding.fix.empty()) text += fmt::format("  {:<9}fix: {}\n", "", finding.fix);
  }
  return text;
}

}  // namespace

std::string_view Name(Severity severity) {
  switch (severity) {
    case Severity::kOk: return "ok";
    case Severity::kNote: return "note";
    case Severity::kWarning: return "warning";
  }
  return "?";
}

std::vector<Backend> TryBackends() {
  return {BuiltBackend("embedded", TryEmbedded()), BuiltBackend("sim", TrySim()),
          BuiltBackend("shm", TryShm()), BuiltBackend("tcp", TryTcp()), MissingBackend("verbs")};
}

std::vector<Diagnosis> Judge(const Machine& machine) {
  std::vector<Diagnosis> findings = {JudgeCores(machine), JudgeMemory(machine)};
  const uint64_t memory = machine.memory_bytes.value_or(kUnlimited);
  if (machine.group_limit_bytes.value_or(kUnlimited) < memory) findings.push_back(JudgeGroupLimit(machine));
  findings.push_back(JudgeTransparentHugePages(machine));
  findings.push_back(JudgeHugePages(machine));
  findings.push_back(JudgeMemlock(machine));
  findings.push_back(JudgeRdma(machine));
  return findings;
}

ExitCode Doctor(const DoctorCommand& command) {
  const DoctorReport report{TryBackends(), Judge(ReadMachine())};
  Print(command.json ? ToJson(report) : Text(report, Paint::ForStdout()));
  return kSuccess;
}

}  // namespace farside::tools
