#include "tools/export/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.h"
#include "tools/common/output.h"

namespace farside::tools {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 18;
constexpr int kTemporaryTries = 100;

// Where the file is, through symbolic links; so that a link stays one.
std::string Resolved(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr), &std::free);
  return real != nullptr ? std::string(real.get()) : path;
}

Error Failed(const std::string& path, int error) {
  return Error(ErrorCode::kUnavailable,
               fmt::format("{}: {}", path == "-" ? "stdout" : Escape(path), std::strerror(error)));
}

}  // namespace

OutputFile::OutputFile(int file, bool owned, std::string path, std::string temporary)
    : file_(file),
      is_regular_(!temporary.empty()),
      owned_(owned),
      path_(std::move(path)),
      temporary_(std::move(temporary)) {}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : file_(other.file_),
      is_regular_(other.is_regular_),
      owned_(std::exchange(other.owned_, false)),
      path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, "")),
      buffer_(std::move(other.buffer_)) {}

OutputFile::~OutputFile() {
  if (owned_) ::close(file_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Result<OutputFile> OutputFile::Open(const std::string& path) {
  if (path == "-") return OutputFile(STDOUT_FILENO, false, path, "");
  struct stat about {};
  const bool exists = ::stat(path.c_str(), &about) == 0;
  if (exists && !S_ISREG(about.st_mode)) {
    const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (file < 0) return Failed(path, errno);
    return OutputFile(file, true, path, "");
  }
  const std::string real = exists ? Resolved(path) : path;
  const mode_t mode = exists ? about.st_mode & 0777 : 0666;
  for (int i = 0; i < kTemporaryTries; ++i) {
    std::string temporary = fmt::format("{}.tmp-{}-{}", real, ::getpid(), i);
    const int file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (file >= 0) return OutputFile(file, true, real, std::move(temporary));
    if (errno != EEXIST) return Failed(path, errno);
  }
  return Failed(path, EEXIST);
}

Error OutputFile::Failure() const { return Failed(path_, errno); }

bool OutputFile::reader_is_gone() const { return ReaderIsGone(file_); }

Status OutputFile::Flush() {
  std::string_view left = buffer_;
  while (!left.empty()) {
    const ssize_t written = ::write(file_, left.data(), left.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Failure();
    left.remove_prefix(static_cast<size_t>(written));
  }
  buffer_.clear();
  return OkStatus();
}

Status OutputFile::Write(std::string_view text) {
  buffer_ += text;
  return buffer_.size() < kBufferBytes ? OkStatus() : Flush();
}

Status OutputFile::FinishUnder(const std::string& path) {
  if (Status flushed = Flush(); !flushed.ok()) return flushed;
  if (temporary_.empty()) return OkStatus();
  if (::fsync(file_) != 0) return Failure();
  if (std::rename(temporary_.c_str(), path.c_str()) != 0) return Failure();
  temporary_.clear();
  return OkStatus();
}

Status OutputFile::Finish() { return FinishUnder(path_); }

Result<std::string> OutputFile::FinishPartial() {
  const std::string path = temporary_.empty() ? "" : path_ + ".partial";
  if (Status finished = FinishUnder(path); !finished.ok()) return finished.error();
  return path;
}

}  // namespace farside::tools
