#include "tools/import/line_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.h"

namespace farside::tools {
namespace {

constexpr size_t kFirstBuffer = size_t{1} << 20;

Error Failure(const std::string& name) {
  return Error(ErrorCode::kUnavailable, fmt::format("{}: {}", name, std::strerror(errno)));
}

}  // namespace

LineSource::LineSource(int file, bool owned, std::string name, uint64_t bytes)
    : file_(file), owned_(owned), name_(std::move(name)), bytes_(bytes), buffer_(kFirstBuffer, '\0') {}

LineSource::LineSource(LineSource&& other) noexcept
    : file_(other.file_),
      owned_(std::exchange(other.owned_, false)),
      name_(std::move(other.name_)),
      bytes_(other.bytes_),
      buffer_(std::move(other.buffer_)),
      begin_(other.begin_),
      end_(other.end_),
      read_(other.read_),
      lines_(other.lines_),
      at_end_(other.at_end_) {}

LineSource::~LineSource() {
  if (owned_) ::close(file_);
}

Result<LineSource> LineSource::Open(const std::string& path) {
  const bool is_stdin = path == "-";
  const std::string name = is_stdin ? "stdin" : Escape(path);
  const int file = is_stdin ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return Failure(name);
  struct stat about {};
  const bool regular = ::fstat(file, &about) == 0 && S_ISREG(about.st_mode);
  return LineSource(file, !is_stdin, name, regular ? static_cast<uint64_t>(about.st_size) : 0);
}

Status LineSource::ReadMore() {
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ == buffer_.size()) buffer_.resize(2 * buffer_.size());
  ssize_t got = -1;
  do {
    got = ::read(file_, buffer_.data() + end_, buffer_.size() - end_);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return Failure(name_);
  end_ += static_cast<size_t>(got);
  read_ += static_cast<uint64_t>(got);
  at_end_ = got == 0;
  return OkStatus();
}

Result<bool> LineSource::Next(std::string_view& line, size_t most) {
  size_t searched = begin_;
  while (true) {
    const void* const found = std::memchr(buffer_.data() + searched, '\n', end_ - searched);
    const size_t line_end =
        found != nullptr ? static_cast<size_t>(static_cast<const char*>(found) - buffer_.data()) : end_;
    if (line_end - begin_ > most) {
      ++lines_;
      return Error(ErrorCode::kInvalidArgument, fmt::format("the line has more than {} bytes", most));
    }
    if (found != nullptr || (at_end_ && begin_ < end_)) {
      line = std::string_view(buffer_).substr(begin_, line_end - begin_);
      begin_ = found != nullptr ? line_end + 1 : end_;
      ++lines_;
      return true;
    }
    if (at_end_) return false;
    const size_t seen = end_ - begin_;
    if (Status more = ReadMore(); !more.ok()) return more.error();
    searched = begin_ + seen;
  }
}

}  // namespace farside::tools
