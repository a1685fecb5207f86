// Golden bytes of the memory that processes share; see docs/layouts/shm.md, whose example this is.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "fabric/memory/line_memory.h"
#include "fabric/memory/region.h"
#include "fabric/shm/layout.h"
#include "fabric/shm/shared_memory.h"

namespace farside::fabric::shm {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes At(const SharedMemory& memory, uint64_t offset, size_t size) {
  const auto* from = reinterpret_cast<const uint8_t*>(&memory.control()) + offset;
  return Bytes(from, from + size);
}
Bytes Word(uint64_t value) {
  Bytes bytes(8);
  std::memcpy(bytes.data(), &value, 8);
  return bytes;
}

class Patient final : public memory::Watch {
 public:
  bool MayBeFinished(const memory::Sequence&, std::optional<Nanos>&) override { return true; }
};

// Given fresh memory for a region of 8 KiB. Expect the header byte by byte, and zeroes behind it.
TEST(ShmLayout, HeaderOfFreshMemory) {
  const memory::RegionId id = {0x0102030405060708, 0x1112131415161718};
  const auto memory = std::move(*SharedMemory::Create(std::move(*memory::Region::Shareable(8192)), id));
  EXPECT_EQ(kControlBytes, 1'085'440u);
  EXPECT_EQ(At(*memory, 0, 8), Bytes({'f', 'a', 'r', '-', 's', 'h', 'm', '1'}));
  EXPECT_EQ(At(*memory, 8, 8), Bytes({2, 0, 0, 0, 0, 16, 0, 0}));
  EXPECT_EQ(At(*memory, 16, 8), Word(8192));
  EXPECT_EQ(At(*memory, 24, 8), Word(id[0]));
  EXPECT_EQ(At(*memory, 32, 8), Word(id[1]));
  EXPECT_EQ(At(*memory, 40, 8), Word(memory->control().header.instance));
  EXPECT_EQ(At(*memory, 48, kControlBytes - 48), Bytes(kControlBytes - 48));
}

// Given the example of the page: a WRITE by the client of slot 2, before and after it has been recovered.
TEST(ShmLayout, WriteOfADeadClient) {
  const auto memory =
      std::move(*SharedMemory::Create(std::move(*memory::Region::Shareable(8192)), NewRegionId()));
  ClientSlot& slot = memory->control().slots[2];
  Patient patient;
  memory::LineMemory client(memory->region(), memory->stripes(), HolderOf(2), slot.staging, patient);
  EXPECT_TRUE(slot.gate.Enter());
  const Bytes payload(16, 0xee);
  EXPECT_TRUE(client.Write(0x1050, std::as_bytes(std::span(payload))));
  // As it was before the second word was stored and the sequence was freed.
  memory->stripes().sequences[65] = HolderOf(2);
  std::memset(memory->region().data() + 0x1058, 0, 8);

  EXPECT_EQ(At(*memory, 4616, 8), Word(3));
  EXPECT_EQ(At(*memory, 37376, 24),
            Bytes({1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(At(*memory, 37504, 8), Word(0));
  EXPECT_EQ(At(*memory, 37512, 8), Word(0x1050));
  EXPECT_EQ(At(*memory, 37520, 8), Word(16));
  EXPECT_EQ(At(*memory, 37568, 16), Bytes(16, 0xee));

  memory::LineMemory node(memory->region(), memory->stripes());
  EXPECT_EQ(node.Recover(HolderOf(2), slot.staging), 1u);
  EXPECT_EQ(At(*memory, 4616, 8), Bytes({0, 0, 1, 0, 0, 0, 0, 0}));
  EXPECT_EQ(At(*memory, 37504, 8), Word(65535));
  EXPECT_EQ(memory->region()[0x105f], std::byte{0xee});
  EXPECT_EQ(memory->region()[0x1060], std::byte{0});
  slot.gate.Close();
  EXPECT_EQ(At(*memory, 37392, 1), Bytes({1}));
}

}  // namespace
}  // namespace farside::fabric::shm
