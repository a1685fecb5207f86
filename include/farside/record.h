// The records of a table, the cursor of a walk through all of them, and the statistics of a table.
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

// How far a walk through all records of a table has come (Session::Next). A new cursor is at the beginning.
// Only the engine knows what the numbers mean. A cursor may be copied, kept, and used by any session while
// the table exists.
struct Cursor {
  std::array<uint64_t, 4> position{};
};

// How many records a table holds, and how much memory it takes.
struct TableStats {
  uint64_t records = 0;
  uint64_t slots = 0;         // entries that the index has room for
  uint64_t index_bytes = 0;   // of far memory, without the blocks of keys and values
  uint64_t block_bytes = 0;   // of far memory: keys and values with headers, before rounding up
  uint64_t client_bytes = 0;  // of this process: the session's caches
  // Figures of the engine, by name: {"share in level 1", 0.977}
  std::vector<std::pair<std::string, double>> details;
};

}  // namespace farside
