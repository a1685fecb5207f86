// `farside serve`: a memory node. It owns a region and offers it to clients over shared memory, TCP, or both
// at once.
#pragma once

#include <cstdint>
#include <string>

#include "tools/common/exit_code.h"

namespace farside::tools {

struct ServeCommand {
  std::string size;                // "8GiB"; needed, unless a file exists
  std::string listen;              // tcp://HOST:PORT; empty: no TCP
  std::string shm;                 // a name, or the path of a socket; empty: no shared memory
  std::string file;                // where the memory is kept; empty: nowhere, or in `pmem`
  std::string pmem;                // the same, for a durable pool
  std::string hugepages = "auto";  // auto, on, off
  uint32_t clients = 1024;         // sessions at a time, of a pool that is made
  uint32_t tables = 64;            // of a pool that is made
  std::string buffers = "1GiB";    // for large requests and answers over TCP, of all clients together
  uint32_t per_address = 2048;     // clients of one address over TCP
  uint32_t stall = 30;             // seconds that a client over TCP may make no progress
  uint32_t threads = 0;            // for TCP; 0: as many as there are processors, but at most 4
  std::string tls_cert;
  std::string tls_key;
  std::string tls_ca;
  bool insecure = false;
  std::string fence =
      "wait";          // what happens to a stopped process of shared memory that has to be fenced: wait, kill
  std::string group;   // whose members may use the shared memory, too
  bool quiet = false;  // only what an operator has to act on
  bool verbose = false;  // every connection too
};

// Serves until it is asked to stop (SIGINT, SIGTERM). The line "ready URL..." on stdout says that clients may
// come.
ExitCode Serve(const ServeCommand& command);

}  // namespace farside::tools
