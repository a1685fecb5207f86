// `farside completion SHELL`: a script by which a shell completes commands, options and the names that
// Farside knows.
//
// The script is made from the tree of commands, so it offers what the binary that printed it understands.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include <CLI/App.hpp>

namespace farside::tools {

inline constexpr std::array<std::string_view, 2> kCompletionShells = {"bash", "zsh"};

// `shell` is one of those. `farside` is the whole program.
std::string CompletionScript(std::string_view shell, const CLI::App& farside);

}  // namespace farside::tools
