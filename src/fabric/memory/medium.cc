#include "fabric/memory/medium.h"

#include <algorithm>
#include <iterator>

#include "fabric/address.h"
#include "fabric/memory/persist.h"

#ifdef FARSIDE_LIBPMEM
#include <libpmem.h>
#endif

namespace farside::fabric::memory {
namespace {

class MsyncMedium final : public Medium {
 public:
  MsyncMedium(std::span<std::byte> region, int file) : region_(region), file_(file) {}

  std::string_view name() const override { return "msync"; }
  // What is written in the end are pages, so flushes of one page are one.
  void Flush(uint64_t offset, uint64_t size) override {
    const uint64_t end = (offset + size + kPageBytes - 1) / kPageBytes * kPageBytes;
    pages_.Add(offset / kPageBytes * kPageBytes, std::min<uint64_t>(end, region_.size()));
  }

 private:
  Status DrainAll() override {
    Status drained = OkStatus();
    for (const auto& [begin, end] : pages_.end_of()) {
      drained = PersistMapped(region_, file_, begin, end - begin);
      if (!drained.ok()) break;
    }
    pages_.Clear();
    return drained;
  }

  const std::span<std::byte> region_;
  const int file_;
  MergedRanges pages_;
};

#ifdef FARSIDE_LIBPMEM
class PmemMedium final : public Medium {
 public:
  explicit PmemMedium(std::span<std::byte> region) : region_(region) {}

  std::string_view name() const override { return "libpmem"; }
  void Flush(uint64_t offset, uint64_t size) override { ::pmem_flush(region_.data() + offset, size); }

 private:
  Status DrainAll() override {
    ::pmem_drain();
    return OkStatus();
  }

  const std::span<std::byte> region_;
};
#endif

}  // namespace

void MergedRanges::Add(uint64_t begin, uint64_t end) {
  if (begin >= end) return;
  auto next = end_of_.upper_bound(begin);
  if (next != end_of_.begin() && std::prev(next)->second >= begin) {
    --next;
    begin = next->first;
  }
  while (next != end_of_.end() && next->first <= end) {
    end = std::max(end, next->second);
    next = end_of_.erase(next);
  }
  end_of_[begin] = end;
}

std::unique_ptr<Medium> NewMsyncMedium(std::span<std::byte> region, int file) {
  return std::make_unique<MsyncMedium>(region, file);
}

#ifdef FARSIDE_LIBPMEM
// libpmem knows nothing of mappings that it has not made itself, but it lets its user say that all memory
// shall count as persistent (PMEM_IS_PMEM_FORCE=1).
std::unique_ptr<Medium> NewPmemMedium(std::span<std::byte> region, bool synchronous) {
  if (!synchronous && ::pmem_is_pmem(region.data(), region.size()) == 0) return nullptr;
  return std::make_unique<PmemMedium>(region);
}
#else
std::unique_ptr<Medium> NewPmemMedium(std::span<std::byte> /*region*/, bool /*synchronous*/) {
  return nullptr;
}
#endif

}  // namespace farside::fabric::memory
