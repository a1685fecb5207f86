#include "fabric/memory/page_gatherer.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "fabric/memory/region.h"
#include "farside/result.h"

namespace farside::fabric::memory {
namespace {

using namespace std::chrono_literals;

constexpr int kCollapse = 25;  // MADV_COLLAPSE, which older headers do not name

// How often the thread looks whether something was stored: an fstat, ten times a second.
constexpr std::chrono::nanoseconds kLook = 100ms;
// The least it rests between two steps. It rests at least as long as the step took, too.
constexpr std::chrono::nanoseconds kRest = 10ms;
// The most that it waits for the kernel to have huge pages again.
constexpr std::chrono::nanoseconds kLongest = 60s;

uint64_t PageBytes() { return static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)); }

}  // namespace

bool PageGatherer::KernelCan() {
  const Result<Region> sample = Region::Shareable(2 * kHugePageBytes);
  if (!sample.ok()) return false;
  sample->bytes()[0] = std::byte{1};
  if (::madvise(sample->bytes().data(), kHugePageBytes, kCollapse) == 0) return true;
  return errno == ENOMEM || errno == EAGAIN || errno == EBUSY;  // it would, some other time
}

PageGatherer::PageGatherer(std::span<std::byte> region, int descriptor)
    : region_(region),
      descriptor_(descriptor),
      ranges_(region.size() / kHugePageBytes),
      done_(ranges_),
      pages_(kHugePageBytes / PageBytes()) {
  // Small regions are mapped anywhere (map_shared.h), and are not worth it.
  ended_ = pages_.empty() || reinterpret_cast<uintptr_t>(region.data()) % kHugePageBytes != 0;
}

PageGatherer::Next PageGatherer::Step() {
  if (ended_) return Next::kNever;
  if (next_ == 0) {
    const std::optional<uint64_t> blocks = BlocksInFile();
    if (!blocks.has_value()) return Next::kNever;
    if (last_blocks_ == blocks) return Next::kIdle;
    blocks_at_begin_ = *blocks;
    some_left_ = false;
  }
  uint64_t gathers = 0;
  for (uint64_t looks = 0; looks < kLooks && gathers < kGathers; ++looks) {
    const std::optional<uint64_t> found = NextWithData(next_);
    if (!found.has_value()) return EndPass();
    next_ = *found + 1;
    if (done_[*found] || !IsHalfFull(*found)) continue;
    ++gathers;
    switch (Gather(*found)) {
      case Outcome::kGathered:
        done_[*found] = true;
        ++gathered_;
        break;
      case Outcome::kNotNow: some_left_ = true; break;
      case Outcome::kNoMemory:  // nor for the next one; and each attempt costs the kernel a long search
        some_left_ = true;
        return EndPass();
      case Outcome::kImpossible:
        ended_ = gathered_ == 0;
        if (ended_) return Next::kNever;
        done_[*found] = true;
        break;
    }
  }
  return Next::kMore;
}

PageGatherer::Next PageGatherer::EndPass() {
  next_ = 0;
  last_blocks_ = some_left_ ? std::nullopt : std::optional(blocks_at_begin_);
  return some_left_ ? Next::kLater : Next::kIdle;
}

std::optional<uint64_t> PageGatherer::BlocksInFile() const {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) return std::nullopt;
  return static_cast<uint64_t>(status.st_blocks);
}

// The position of the descriptor means nothing: memory is mapped, not read.
std::optional<uint64_t> PageGatherer::NextWithData(uint64_t range) const {
  const auto begin = done_.begin() + static_cast<ptrdiff_t>(range);
  const auto open = static_cast<uint64_t>(std::find(begin, done_.end(), false) - done_.begin());
  if (open == ranges_) return std::nullopt;
  const off_t data = ::lseek(descriptor_, static_cast<off_t>(open * kHugePageBytes), SEEK_DATA);
  if (data < 0) return std::nullopt;  // ENXIO: there is nothing more
  const uint64_t found = static_cast<uint64_t>(data) / kHugePageBytes;
  return found < ranges_ ? std::optional(found) : std::nullopt;
}

bool PageGatherer::IsHalfFull(uint64_t range) {
  if (::mincore(region_.data() + range * kHugePageBytes, kHugePageBytes, pages_.data()) != 0) return false;
  const auto there =
      std::count_if(pages_.begin(), pages_.end(), [](uint8_t page) { return (page & 1) != 0; });
  return 2 * static_cast<uint64_t>(there) >= pages_.size();
}

PageGatherer::Outcome PageGatherer::Gather(uint64_t range) const {
  if (::madvise(region_.data() + range * kHugePageBytes, kHugePageBytes, kCollapse) == 0)
    return Outcome::kGathered;
  switch (errno) {
    case ENOMEM: return Outcome::kNoMemory;
    case EAGAIN:
    case EBUSY:
    case EINTR: return Outcome::kNotNow;
    default: return Outcome::kImpossible;
  }
}

PageGathererThread::PageGathererThread(std::span<std::byte> region, int descriptor, Logger& log)
    : gatherer_(region, descriptor), log_(log), thread_([this] { Run(); }) {}

PageGathererThread::~PageGathererThread() {
  {
    const std::scoped_lock lock(mutex_);
    closing_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void PageGathererThread::Run() {
  using Time = std::chrono::steady_clock;
  std::chrono::nanoseconds patience = kLook;
  std::unique_lock lock(mutex_);
  while (!closing_) {
    lock.unlock();
    const uint64_t had = gatherer_.gathered();
    const Time::time_point began = Time::now();
    const PageGatherer::Next next = gatherer_.Step();
    const std::chrono::nanoseconds took = Time::now() - began;
    if (gatherer_.gathered() != had) patience = kLook;
    lock.lock();
    switch (next) {
      case PageGatherer::Next::kMore:
        wake_.wait_for(lock, std::max(kRest, took), [this] { return closing_; });
        break;
      case PageGatherer::Next::kIdle:
        wake_.wait_for(lock, std::max(kLook, took), [this] { return closing_; });
        break;
      case PageGatherer::Next::kLater:
        wake_.wait_for(lock, std::max(patience, took), [this] { return closing_; });
        patience = std::min(2 * patience, kLongest);
        break;
      case PageGatherer::Next::kNever:
        log_.Warn("goes without huge pages: the kernel does not gather them for this memory");
        return;
    }
  }
}

}  // namespace farside::fabric::memory
