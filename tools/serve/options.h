// The options of `farside serve` on the command line.
#pragma once

#include <CLI/App.hpp>

#include "tools/serve/serve.h"

namespace farside::tools {

CLI::App* AddServe(CLI::App& app, ServeCommand& command);

}  // namespace farside::tools
