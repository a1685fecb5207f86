#include "tools/serve/options.h"

#include "pool/region/layout.h"
#include "tools/common/command_options.h"

namespace farside::tools {
namespace {

constexpr const char* kFooter =
    R"(Offers memory to clients, and does almost nothing else: clients of shared memory do everything
themselves, and those of TCP have their verbs carried out. Both can use it at once. It says "ready" with
its URLs when clients may come, and stops at SIGINT or SIGTERM. Without --file or --pmem the memory is gone
then. See docs/persistence.md for what survives a power cut.

Other machines are served with TLS only, with certificates on both sides. A client whose certificate has
OU=read-write may write, and every other client may only read. See docs/security.md for how to make
certificates, and for what a node does about floods.

Examples:
  farside serve --size 1GiB --shm pool
  farside serve --size 8GiB --shm pool --listen tcp://127.0.0.1:7700
  farside serve --size 8GiB --file pool.farside --listen tcp://127.0.0.1:7700
  farside serve --size 8GiB --pmem /mnt/pmem/pool.farside --shm pool
  farside serve --size 8GiB --listen tcp://0.0.0.0:7700 --tls-cert node.pem --tls-key node.key --tls-ca clients.pem)";

constexpr uint32_t kMostTables = 65536;
constexpr uint32_t kMostThreads = 64;
constexpr uint32_t kMostPerAddress = 4096;
constexpr uint32_t kLongestStall = 86400;

}  // namespace

CLI::App* AddServe(CLI::App& app, ServeCommand& command) {
  CLI::App* const serve = app.add_subcommand("serve", "Be a memory node");
  serve->footer(kFooter);
  AddText(*serve, "--size", command.size, "SIZE",
          "Memory to offer, as in 8GiB; of a file that exists, its own");
  AddText(*serve, "--shm", command.shm, "NAME",
          "Serve shared memory by this name, or at the path of a socket");
  AddText(*serve, "--listen", command.listen, "URL",
          "Serve TCP there: tcp://HOST:PORT; port 0 is any that is free");
  AddText(*serve, "--file", command.file, "PATH",
          "Keep the memory in this file; it is made if it does not exist");
  AddText(*serve, "--pmem", command.pmem, "PATH",
          "The same, for a durable pool: what was acknowledged survives a power cut");
  AddText(*serve, "--hugepages", command.hugepages, "WHEN",
          "auto, on or off; auto gathers them while the memory fills, if none are reserved");
  AddNumber(*serve, "--clients", command.clients, 1, pool::kMaxClientSlots,
            "Sessions at a time, of a pool that is made");
  AddNumber(*serve, "--tables", command.tables, 1, kMostTables, "Tables, of a pool that is made");
  AddNumber(*serve, "--threads", command.threads, 0, kMostThreads,
            "Threads that serve TCP clients; 0 is one per processor, up to 4");
  AddText(*serve, "--buffers", command.buffers, "SIZE",
          "Memory for large requests and answers over TCP, of all clients together; at least 256MiB");
  AddNumber(*serve, "--per-address", command.per_address, 1, kMostPerAddress,
            "Clients that one address may have over TCP at a time");
  AddNumber(*serve, "--stall", command.stall, 1, kLongestStall,
            "Seconds that a client over TCP may leave a request half sent, or take no answers");
  AddText(*serve, "--tls-cert", command.tls_cert, "PATH", "The node's certificate, in PEM");
  AddText(*serve, "--tls-key", command.tls_key, "PATH", "Its key");
  AddText(*serve, "--tls-ca", command.tls_ca, "PATH", "The authority that signs certificates of clients");
  AddFlag(*serve, "--insecure", command.insecure, "Serve other machines in plain text");
  AddText(*serve, "--fence", command.fence, "HOW",
          "What happens to a stopped process of shared memory that others take for dead: wait for it, or "
          "kill it");
  AddText(*serve, "--group", command.group, "NAME", "Members of this group may use the shared memory, too");
  CLI::Option* const quiet = AddFlag(*serve, "--quiet", command.quiet, "Log only what needs an action");
  AddFlag(*serve, "--verbose", command.verbose, "Log every connection")->excludes(quiet);
  return serve;
}

}  // namespace farside::tools
