// What tables hold, how a walk through one goes on, and what can be said about one.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace farside {

// A key with its value: two strings of any bytes.
struct Record {
  std::string key;
  std::string value;

  friend bool operator==(const Record&, const Record&) = default;
};

// How far a walk through all records of a table has come (Session::Next). A fresh one stands at the beginning. What is
// in it is the engine's business; it may be copied, kept, and used by any session, as long as the table exists.
struct Cursor {
  std::array<uint64_t, 4> position{};
};

// What a table holds, and what it takes.
struct TableStats {
  uint64_t records = 0;
  uint64_t slots = 0;         // entries that the index has room for
  uint64_t index_bytes = 0;   // of far memory, without the blocks of keys and values
  uint64_t block_bytes = 0;   // of far memory: keys and values with their headers, as they were asked for
  uint64_t client_bytes = 0;  // of this session's memory: caches
  // What only this engine can tell, by name: "share in level 1" 0.977
  std::vector<std::pair<std::string, double>> details;
};

}  // namespace farside
