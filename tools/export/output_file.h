// A file that is complete or is not there, for results that take a while to write.
//
// It is written under another name, beside its own, and gets its name when it is complete: whatever happens
// on the way, a file that was there before stays as it was. What is no regular file (stdout, a pipe, a
// device) is written as it is.
#pragma once

#include <string>
#include <string_view>

#include "farside/result.h"

namespace farside::tools {

class OutputFile {
 public:
  // "-" is stdout. Errors are one line that names the file.
  static Result<OutputFile> Open(const std::string& path);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  // Without Finish or FinishPartial, nothing stays of a regular file.
  ~OutputFile();

  Status Write(std::string_view text);
  // The file is complete: it gets its name.
  Status Finish();
  // The file is not complete: it is left under another name, "PATH.partial", which is returned. Empty if it
  // has none.
  Result<std::string> FinishPartial();

  // Whether the last error is that the reader is gone.
  bool reader_is_gone() const;
  // Whether it is complete or not there; otherwise what was written has been written.
  bool is_regular() const { return is_regular_; }

 private:
  OutputFile(int file, bool owned, std::string path, std::string temporary);

  Status Flush();
  Status FinishUnder(const std::string& path);
  Error Failure() const;

  int file_;
  bool is_regular_;
  bool owned_;
  std::string path_;
  std::string temporary_;  // empty if it is written as it is
  std::string buffer_;
};

}  // namespace farside::tools
