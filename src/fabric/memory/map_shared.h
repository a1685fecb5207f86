// Maps memory that processes share, at an address at which the kernel can use huge pages for it.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace farside::fabric::memory {

// The flags of mmap by which a file is shared: with MAP_SYNC if its pages are memory that is itself durable
// (DAX). Without it, the processor alone could make a store durable, but not that the file has the page,
// which the file system may only find out at the first store to it, in whichever process.
inline int SharingFlags(int descriptor) {
  constexpr int kSynchronous = MAP_SHARED_VALIDATE | MAP_SYNC;
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  void* const tried = ::mmap(nullptr, page, PROT_READ | PROT_WRITE, kSynchronous, descriptor, 0);
  if (tried == MAP_FAILED) return MAP_SHARED;
  ::munmap(tried, page);
  return kSynchronous;
}

// As mmap: MAP_FAILED, and errno, if it cannot be done.
inline void* MapShared(int descriptor, uint64_t bytes, int reserve = MAP_NORESERVE) {
  constexpr uint64_t kAlignment = uint64_t{2} << 20;
  constexpr int kAccess = PROT_READ | PROT_WRITE;
  const int flags = SharingFlags(descriptor) | reserve;
  if (bytes < 2 * kAlignment) return ::mmap(nullptr, bytes, kAccess, flags, descriptor, 0);

  // Address space for more than is needed, of which the aligned part is used.
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const uint64_t whole = (bytes + page - 1) / page * page;
  const uint64_t reserved = whole + kAlignment;
  void* const space =
      ::mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (space == MAP_FAILED) return MAP_FAILED;
  auto* const start = static_cast<std::byte*>(space);
  const uint64_t before = (0 - reinterpret_cast<uintptr_t>(start)) % kAlignment;
  void* const mapped = ::mmap(start + before, bytes, kAccess, flags | MAP_FIXED, descriptor, 0);
  if (mapped == MAP_FAILED) {
    const int error = errno;
    ::munmap(space, reserved);
    errno = error;
    return MAP_FAILED;
  }
  if (before != 0) ::munmap(start, before);
  if (reserved != before + whole) ::munmap(start + before + whole, reserved - before - whole);
  static_cast<void>(::madvise(mapped, bytes, MADV_HUGEPAGE));  // only advice: small pages work too
  return mapped;
}

}  // namespace farside::fabric::memory
