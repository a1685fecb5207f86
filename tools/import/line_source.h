// The lines of a file or of stdin, of any length up to a bound.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "farside/result.h"

namespace farside::tools {

class LineSource {
 public:
  // "-" is stdin. Errors are one line that names the file.
  static Result<LineSource> Open(const std::string& path);
  LineSource(LineSource&& other) noexcept;
  LineSource& operator=(LineSource&&) = delete;
  ~LineSource();

  // The next line, without its newline, which is valid until the next call. False: there are no more. The
  // last line need not end with a newline. kInvalidArgument if a line has more than `most` bytes; any other
  // error is that of the file.
  Result<bool> Next(std::string_view& line, size_t most);

  uint64_t lines() const { return lines_; }       // that were returned
  uint64_t bytes_read() const { return read_; }   // with what was read ahead
  uint64_t file_bytes() const { return bytes_; }  // 0 if unknown: a pipe

 private:
  LineSource(int file, bool owned, std::string name, uint64_t bytes);

  Status ReadMore();

  int file_;
  bool owned_;
  std::string name_;
  uint64_t bytes_;
  std::string buffer_;
  size_t begin_ = 0;  // of what was not returned yet
  size_t end_ = 0;    // of what was read
  uint64_t read_ = 0;
  uint64_t lines_ = 0;
  bool at_end_ = false;
};

}  // namespace farside::tools
