// A client of a demo's pool, with a table.
#pragma once

#include <memory>
#include <string>

#include "fabric/client.h"
#include "farside/task.h"
#include "index/tables.h"
#include "pool/client.h"
#include "store/registration.h"

namespace farside::tools::demo {

// The registration stays until the demo is over.
struct DemoClient {
  std::unique_ptr<fabric::Client> client;
  std::unique_ptr<store::Registration> registration;
  std::unique_ptr<index::OpenTable> table;

  index::Index& index() { return *table->index; }
};

// Joins the pool, and makes a table of this engine or opens it.
Task<Done> JoinWithTable(DemoClient& demo_client, std::string engine, pool::ClientOptions options);
Task<Done> Leave(DemoClient& demo_client);

}  // namespace farside::tools::demo
