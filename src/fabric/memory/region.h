// The memory of a node: its bytes, and how they are made to survive a power cut.
//
//   Region::Anonymous    memory of this process, zeroed; ends with it
//   Region::Shareable    zeroed memory that other processes can map too; ends with the last of them
//   Region::CreateFile   a new mapped file
//   Region::OpenFile     one that exists
//
// About files:
//
// * A new file is filled under another name, beside its own, and gets its name when it is complete and
//   durable. So a crash leaves either no file of that name or a complete one; what it may leave is
//   PATH.xxxxxx.
// * Its blocks are reserved when it is made. A store to a page for which a full file system has no block is a
//   SIGBUS in the middle of an operation; reserving turns it into an Error before there is anything to lose.
//   (File systems that copy on write may need blocks later all the same, and a process that cuts a mapped
//   file short causes the SIGBUS too: see fixed_size.h.)
// * A file is locked (flock) while a Region has it. The lock is advisory, and ends with the process, or with
//   the last process that maps it through the same descriptor.
// * What was stored survives the process, since the kernel has it, but a power cut only if it was persisted:
//   by Persist, or piece by piece by a Medium (medium.h). Files on memory that is itself durable (DAX) are
//   mapped with MAP_SYNC, so that the processor alone can persist a line.
//
// A child of fork has only memory that was made to be shared: Shareable, and files of Access::kServed. Of the
// rest it has neither the bytes nor the descriptor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/descriptor.h"
#include "base/fork_guard.h"
#include "fabric/memory/medium.h"
#include "farside/result.h"

namespace farside::fabric::memory {

inline constexpr uint64_t kHugePageBytes = uint64_t{2} << 20;

enum class HugePages : uint8_t { kOff, kAuto, kOn };

class Region {
 public:
  enum class Access : uint8_t {
    kShared,   // stores reach the file; no other process may have it open
    kServed,   // the same, and clients get a descriptor that cannot cut it short, if the kernel has such
    kPrivate,  // stores stay in this process and cannot reach the file; others may read it at the same time
  };
  // Fills a new region. An error means that there shall be none.
  using Prepare = std::function<Status(Region&)>;

  // Address space for `bytes` (more than 0); pages come when they are first touched. Large regions ask for
  // huge pages, which spare most of the misses of the TLB; whether the kernel gives them is its business.
  static Result<Region> Anonymous(uint64_t bytes);
  // The same as memory without a name (memfd), whose size can never change. Huge pages are those that the
  // administrator has reserved (vm.nr_hugepages), and take a size that is a whole number of them; kOn is an
  // error where there are not enough, and kAuto says in `note` why it goes without.
  static Result<Region> Shareable(uint64_t bytes, HugePages huge_pages = HugePages::kOff,
                                  std::string* note = nullptr);
  // `prepare` finds zeroed bytes. kAlreadyExists if there is a file of that name, which is left as it is.
  // Only the owner may read and write the new file. `access` is kShared or kServed.
  static Result<Region> CreateFile(const std::string& path, uint64_t bytes, const Prepare& prepare,
                                   Access access = Access::kShared);
  // All bytes of a file, which is changed by stores alone. kNotFound if there is none; kUnavailable if
  // another Region has it; kInvalidArgument if it is empty or no regular file.
  static Result<Region> OpenFile(const std::string& path, Access access);

  Region(Region&& other) noexcept { *this = std::move(other); }
  Region& operator=(Region&& other) noexcept;
  ~Region();

  // Aligned to a page.
  std::span<std::byte> bytes() const { return bytes_; }

  // What other processes map to share it: -1 for memory of this process alone. The lock of a file belongs to
  // this very descriptor and what was made from it by dup, fork or SCM_RIGHTS, and to what was mapped through
  // them: it ends with the last of those, wherever that is.
  int descriptor() const { return file_.get(); }

  // When it has returned, the bytes survive a power cut (and perhaps others of the same pages with them).
  // Does nothing on memory that cannot outlive this process. kCorrupt if the file was cut short meanwhile.
  Status Persist(uint64_t offset, uint64_t size) const;
  // Reads anew from the disk what the kernel keeps of the file, after it has written what it can. So pages
  // that only this machine's memory has, because an earlier write of them failed, are as after a power cut:
  // the kernel takes them for clean, and would never write them (medium/1). No other process may map the
  // file.
  Status Reload() const;
  // By which handlers make single lines survive a power cut. kUnsupported for memory that cannot outlive this
  // process. The region must outlive it.
  Result<std::unique_ptr<Medium>> NewMedium() const;

 private:
  // `pages` are flags of memfd_create, `flags` of mmap.
  static Result<Region> MakeShareable(uint64_t bytes, unsigned pages, int flags);

  Region(std::span<std::byte> bytes, Descriptor file, bool durable, Descriptor::InChild in_child,
         bool synchronous = false)
      : bytes_(bytes), file_(std::move(file)), durable_(durable), synchronous_(synchronous) {
    if (in_child == Descriptor::InChild::kClosed) guard_.emplace();
  }

  std::span<std::byte> bytes_;
  Descriptor file_;  // kept open for its lock
  bool durable_ = false;
  bool synchronous_ = false;        // mapped with MAP_SYNC
  std::optional<ForkGuard> guard_;  // of memory that children do not have
};

}  // namespace farside::fabric::memory
