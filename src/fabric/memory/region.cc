#include "fabric/memory/region.h"

#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <filesystem>
#include <limits>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/size.h"
#include "fabric/memory/fixed_size.h"
#include "fabric/memory/map_shared.h"
#include "fabric/memory/persist.h"

namespace farside::fabric::memory {
namespace {

using InChild = Descriptor::InChild;

// What the kernel counts file sizes with; it also rounds mappings up to whole pages and must not wrap around.
constexpr uint64_t kMostBytes = std::numeric_limits<int64_t>::max() / 2;

// A name that is taken away again.
class TemporaryName {
 public:
  explicit TemporaryName(const std::string& path) : path_(path) {}
  TemporaryName(const TemporaryName&) = delete;
  TemporaryName& operator=(const TemporaryName&) = delete;
  ~TemporaryName() { ::unlink(path_.c_str()); }

 private:
  const std::string& path_;
};

ErrorCode CodeOf(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR: return ErrorCode::kNotFound;
    case EEXIST: return ErrorCode::kAlreadyExists;
    case EACCES:
    case EPERM:
    case EROFS: return ErrorCode::kPermissionDenied;
    case EDQUOT:
    case EFBIG:
    case ENOMEM:
    case ENOSPC: return ErrorCode::kOutOfMemory;
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG: return ErrorCode::kInvalidArgument;
    default: return ErrorCode::kUnavailable;
  }
}

// "cannot open pools/a: Permission denied"
Error Cannot(std::string_view what, std::string_view path, int error) {
  return Error(CodeOf(error),
               fmt::format("cannot {} {}: {}", what, Escape(path), std::generic_category().message(error)));
}

Status Lock(const Descriptor& file, const std::string& path, Region::Access access) {
  const int mode = access == Region::Access::kPrivate ? LOCK_SH : LOCK_EX;
  if (::flock(file.get(), mode | LOCK_NB) == 0) return OkStatus();
  if (errno != EWOULDBLOCK) return Cannot("lock", path, errno);
  return Error(ErrorCode::kUnavailable,
               fmt::format("{} is in use by another process; wait until it has ended", Escape(path)));
}

// Sees to it that every byte has a block. The free space is looked at first, because some file systems hand
// out all that they have before they give up.
Status Reserve(const Descriptor& file, const std::string& path, uint64_t bytes) {
  struct statvfs disk {};
  if (::fstatvfs(file.get(), &disk) != 0) return Cannot("look at the file system of", path, errno);
  const bool says_nothing = disk.f_blocks == 0;  // some file systems do not count
  const uint64_t free_bytes = says_nothing ? kMostBytes : uint64_t{disk.f_bavail} * disk.f_frsize;
  if (bytes > free_bytes) {
    constexpr uint64_t kMiB = uint64_t{1} << 20;
    return Error(ErrorCode::kOutOfMemory,
                 fmt::format("cannot create {}: it needs {}, and its file system has {} left; choose a "
                             "smaller size",
                             Escape(path), FormatSize(bytes), FormatSize(free_bytes / kMiB * kMiB)));
  }
  int error = EINTR;
  while (error == EINTR) error = ::posix_fallocate(file.get(), 0, static_cast<off_t>(bytes));
  if (error != 0) return Cannot("reserve the blocks of", path, error);
  return OkStatus();
}

// A name is durable when its folder is.
Status PersistName(const std::string& path) {
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) folder = ".";
  const Descriptor file =
      Descriptor::From([&folder] { return ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  if (!file.open()) return Cannot("open", folder.native(), errno);
  if (::fsync(file.get()) != 0 && errno != EINVAL) {  // EINVAL: this file system has no such thing
    return Cannot("persist", folder.native(), errno);
  }
  return OkStatus();
}

InChild InChildOf(Region::Access access) {
  return access == Region::Access::kServed ? InChild::kKept : InChild::kClosed;
}

template <class Open>
Descriptor OpenFor(Region::Access access, Open open) {
  if (InChildOf(access) == InChild::kKept) return Descriptor(open(), InChild::kKept);
  return Descriptor::From(open);
}

struct Mapping {
  std::span<std::byte> bytes;
  bool synchronous = false;  // with MAP_SYNC
};

// As mmap.
void* Map(uint64_t bytes, int flags, int file, InChild in_child) {
  const ForkDelay delay;
  void* const address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, file, 0);
  if (address != MAP_FAILED && in_child == InChild::kClosed)
    static_cast<void>(::madvise(address, bytes, MADV_DONTFORK));
  return address;
}

Result<Mapping> MapFile(const Descriptor& file, const std::string& path, uint64_t bytes,
                        Region::Access access) {
  // A private mapping of a file that is larger than memory is fine as long as few pages are stored to.
  const int flags =
      access == Region::Access::kPrivate ? MAP_PRIVATE | MAP_NORESERVE : SharingFlags(file.get());
  void* const address = Map(bytes, flags, file.get(), InChildOf(access));
  if (address == MAP_FAILED) return Cannot("map", path, errno);
  return Mapping{.bytes = {static_cast<std::byte*>(address), bytes}, .synchronous = (flags & MAP_SYNC) != 0};
}

}  // namespace

Result<Region> Region::Anonymous(uint64_t bytes) {
  void* address = MAP_FAILED;
  errno = ENOMEM;
  if (bytes <= kMostBytes)
    address = Map(bytes, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, InChild::kClosed);
  if (address == MAP_FAILED) {
    return Error(ErrorCode::kOutOfMemory,
                 fmt::format("cannot map {} of memory ({}); choose a smaller region", FormatSize(bytes),
                             std::generic_category().message(errno)));
  }
  if (bytes >= 2 * kHugePageBytes) {
    static_cast<void>(::madvise(address, bytes, MADV_HUGEPAGE));  // only advice: small pages work too
  }
  return Region({static_cast<std::byte*>(address), bytes}, Descriptor(), false, InChild::kClosed);
}

Result<Region> Region::MakeShareable(uint64_t bytes, unsigned pages, int flags) {
  const auto cannot = [bytes](int error) {
    return Error(ErrorCode::kOutOfMemory,
                 fmt::format("cannot make {} of memory that processes share ({}); choose a smaller region",
                             FormatSize(bytes), std::generic_category().message(error)));
  };
  if (bytes > kMostBytes) return cannot(ENOMEM);
  Descriptor file(::memfd_create("farside", MFD_CLOEXEC | MFD_ALLOW_SEALING | pages), InChild::kKept);
  if (!file.open() || ::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) return cannot(errno);
  if (::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) return cannot(errno);
  void* const address = MapShared(file.get(), bytes, flags);
  if (address == MAP_FAILED) return cannot(errno);
  return Region({static_cast<std::byte*>(address), bytes}, std::move(file), false, InChild::kKept);
}

Result<Region> Region::Shareable(uint64_t bytes, HugePages huge_pages, std::string* note) {
  if (huge_pages != HugePages::kOff) {
    // Mapping them reserves them, so that a later access cannot find that there are none left.
    if (bytes % kHugePageBytes == 0) {
      Result<Region> huge = MakeShareable(bytes, MFD_HUGETLB | MFD_HUGE_2MB, 0);
      if (huge.ok()) return huge;
    }
    const std::string why = fmt::format(
        "no {} of huge pages are free; reserve them with 'sysctl vm.nr_hugepages={}' (the size must be a "
        "whole number of {})",
        FormatSize(bytes), (bytes + kHugePageBytes - 1) / kHugePageBytes, FormatSize(kHugePageBytes));
    if (huge_pages == HugePages::kOn) return Error(ErrorCode::kOutOfMemory, why);
    if (note != nullptr) *note = why;
  }
  return MakeShareable(bytes, 0, MAP_NORESERVE);
}

// A process that dies before the link leaves the temporary name; one that dies right after it leaves both
// names, and the file is complete under either.
Result<Region> Region::CreateFile(const std::string& path, uint64_t bytes, const Prepare& prepare,
                                  Access access) {
  assert(bytes > 0 && access != Access::kPrivate);
  std::string temporary = path + ".XXXXXX";
  Descriptor file = OpenFor(access, [&temporary] { return ::mkostemp(temporary.data(), O_CLOEXEC); });
  if (!file.open()) return Cannot("create", path, errno);
  const TemporaryName name(temporary);
  if (access == Access::kServed) {
    file = Descriptor(OpenAtFixedSize(temporary, O_RDWR | O_CLOEXEC), InChild::kKept);
    if (!file.open()) return Cannot("open", temporary, errno);
  }

  // Before other processes can find the file, so that none opens it in between.
  if (Status locked = Lock(file, temporary, Access::kShared); !locked.ok()) return locked.error();
  if (Status reserved = Reserve(file, path, bytes); !reserved.ok()) return reserved.error();
  Result<Mapping> mapped = MapFile(file, path, bytes, access);
  if (!mapped.ok()) return mapped.error();
  Region region(mapped->bytes, std::move(file), true, InChildOf(access), mapped->synchronous);

  if (Status prepared = prepare(region); !prepared.ok()) return prepared.error();
  if (::fsync(region.descriptor()) != 0) return Cannot("persist", path, errno);
  // Unlike a rename, a link replaces nothing that another process has made in the meantime.
  if (::link(temporary.c_str(), path.c_str()) != 0) return Cannot("create", path, errno);
  if (Status persisted = PersistName(path); !persisted.ok()) {
    ::unlink(path.c_str());
    return persisted.error();
  }
  return region;
}

Result<Region> Region::OpenFile(const std::string& path, Access access) {
  // O_NONBLOCK: to open a pipe may wait for ever. It means nothing to regular files.
  const int mode = (access == Access::kPrivate ? O_RDONLY : O_RDWR) | O_CLOEXEC | O_NONBLOCK;
  Descriptor file = OpenFor(access, [&] {
    return access == Access::kServed ? OpenAtFixedSize(path, mode) : ::open(path.c_str(), mode);
  });
  if (!file.open()) return Cannot("open", path, errno);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return Cannot("look at", path, errno);
  if (S_ISDIR(status.st_mode)) return Cannot("open", path, EISDIR);
  if (!S_ISREG(status.st_mode)) {
    return Error(ErrorCode::kInvalidArgument, fmt::format("{} is not a regular file", Escape(path)));
  }
  if (Status locked = Lock(file, path, access); !locked.ok()) return locked.error();
  // Again, now that no process changes it any more.
  if (::fstat(file.get(), &status) != 0) return Cannot("look at", path, errno);
  if (status.st_size == 0) {
    return Error(ErrorCode::kInvalidArgument, fmt::format("{} is an empty file", Escape(path)));
  }
  Result<Mapping> mapped = MapFile(file, path, static_cast<uint64_t>(status.st_size), access);
  if (!mapped.ok()) return mapped.error();
  return Region(mapped->bytes, std::move(file), access != Access::kPrivate, InChildOf(access),
                mapped->synchronous);
}

Region& Region::operator=(Region&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  file_ = std::move(other.file_);  // exchanges them
  std::swap(durable_, other.durable_);
  std::swap(synchronous_, other.synchronous_);
  std::swap(guard_, other.guard_);
  return *this;
}

Region::~Region() {
  // A child of fork does not have the memory, but perhaps something else in its place.
  if (bytes_.empty() || (guard_.has_value() && guard_->forked())) return;
  ::munmap(bytes_.data(), bytes_.size());
}

Status Region::Persist(uint64_t offset, uint64_t size) const {
  assert(offset <= bytes_.size() && size <= bytes_.size() - offset);
  if (!durable_ || size == 0) return OkStatus();
  return PersistMapped(bytes_, descriptor(), offset, size);
}

Status Region::Reload() const {
  if (!durable_ || synchronous_) return OkStatus();  // DAX: the mapping is the memory itself
  if (Status persisted = Persist(0, bytes_.size()); !persisted.ok()) return persisted;
  // The kernel keeps pages that are mapped, so they leave the mapping first.
  int error = ::madvise(bytes_.data(), bytes_.size(), MADV_DONTNEED) == 0 ? 0 : errno;
  if (error == 0) error = ::posix_fadvise(descriptor(), 0, 0, POSIX_FADV_DONTNEED);
  if (error == 0) return OkStatus();
  return Error(ErrorCode::kUnavailable, fmt::format("the kernel cannot read a mapped file anew: {}",
                                                    std::generic_category().message(error)));
}

Result<std::unique_ptr<Medium>> Region::NewMedium() const {
  if (!durable_) return Error(ErrorCode::kUnsupported, "only a mapped file can survive a power cut");
  std::unique_ptr<Medium> medium = NewPmemMedium(bytes_, synchronous_);
  if (medium == nullptr) medium = NewMsyncMedium(bytes_, descriptor());
  return medium;
}

}  // namespace farside::fabric::memory
