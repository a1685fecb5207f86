// A client of a demo's pool, with a table.
#pragma once

#include <memory>
#include <string>

#include "fabric/client.h"
#include "farside/task.h"
#include "index/tables.h"
#include "pool/client.h"
#include "store/session.h"

namespace farside::tools::demo {

// The session stays for whoever is shown next.
struct DemoClient {
  std::unique_ptr<fabric::Client> client;
  std::unique_ptr<store::Session> session;
  std::unique_ptr<index::OpenTable> table;

  index::Index& index() { return *table->index; }
};

// Joins the pool, and makes a table of this engine or opens it.
Task<Done> JoinWithTable(DemoClient& demo_client, std::string engine, pool::ClientOptions options);
Task<Done> Leave(DemoClient& demo_client);

}  // namespace farside::tools::demo
