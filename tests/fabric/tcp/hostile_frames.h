// Frames that no client sends: one thing wrong in each, and such that came out of good ones by chance.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/random.h"
#include "fabric/tcp/wire.h"
#include "tests/fabric/tcp/world.h"

namespace farside::fabric::tcp {

struct HostileFrame {
  std::string name;
  std::string expected;  // what the node says of it
  Bytes bytes;
};

// Every one begins with a good WRITE of 7 to offset 0, which must not happen, unless its header is wrong.
inline std::vector<HostileFrame> HostileFrames(uint64_t region_bytes) {
  static constexpr uint64_t kSeven = 7;
  const Verb good = WriteObject(At(0), kSeven).Lower();
  const auto read = [](uint64_t offset, uint64_t size) {
    return Read(At(offset), {static_cast<std::byte*>(nullptr), size}).Lower();
  };
  std::vector<HostileFrame> frames;
  const auto add = [&frames](std::string name, std::string expected, Bytes bytes) {
    frames.push_back({std::move(name), std::move(expected), std::move(bytes)});
  };
  // The body is a WRITE (3 words: head, size, bytes) and then these words.
  const auto raw = [&](const std::vector<uint64_t>& words, uint8_t verbs = 2) {
    Bytes bytes = FrameOf({good});
    for (const uint64_t word : words) Append(bytes, BytesOf(word));
    auto header = wire::Load<wire::FrameHeader>(bytes.data());
    header.body_bytes = static_cast<uint32_t>(bytes.size() - sizeof(header));
    header.verbs = verbs;
    wire::Store(header, bytes.data());
    return bytes;
  };
  const auto with_header = [&](wire::FrameHeader header) {
    Bytes bytes = FrameOf({good});
    wire::Store(header, bytes.data());
    return bytes;
  };
  const auto head = [](uint64_t kind, uint64_t offset) {
    return wire::VerbHead::Offset::Set(wire::VerbHead::Kind::Set(0, kind), offset);
  };
  const auto kind_of = [](VerbKind kind) { return static_cast<uint64_t>(kind); };

  add("no verbs", "an impossible number of verbs", with_header({.body_bytes = 24, .verbs = 0}));
  add("65 verbs", "an impossible number of verbs", with_header({.body_bytes = 24, .verbs = 65}));
  add("255 verbs", "an impossible number of verbs", with_header({.body_bytes = 24, .verbs = 255}));
  add("odd length", "an odd length", with_header({.body_bytes = 23, .verbs = 1}));
  add("huge length", "more bytes than are allowed", with_header({.body_bytes = 0xfffffff8, .verbs = 1}));
  add("just too long", "more bytes than are allowed",
      with_header({.body_bytes = static_cast<uint32_t>(wire::kMaxBodyBytes) + 8, .verbs = 1}));
  add("bits in the header", "a header with unknown bits",
      with_header({.body_bytes = 24, .verbs = 1, .zero = 1}));
  add("more bits in the header", "a header with unknown bits",
      with_header({.body_bytes = 24, .verbs = 1, .zero_too = 0x8000}));

  add("fewer verbs than promised", "fewer verbs than it says", raw({}, 2));
  add("64 promised, 1 there", "fewer verbs than it says", raw({}, 64));
  add("bytes behind the last verb", "bytes behind its last verb", raw({0}, 1));
  for (const uint64_t kind : {uint64_t{kVerbKinds}, uint64_t{15}}) {
    add("kind " + std::to_string(kind), "a verb of an unknown kind", raw({head(kind, 0), 0, 0, 0, 0}));
  }
  for (int bit = 61; bit < 64; ++bit) {
    add("unknown bit " + std::to_string(bit), "a verb with unknown bits",
        raw({head(kind_of(VerbKind::kRead), 0) | uint64_t{1} << bit, 8}));
  }
  add("an unreachable READ", "a verb with unknown bits",
      raw({wire::VerbHead::Unreachable::Set(head(kind_of(VerbKind::kRead), 0), 1), 8}));
  add("a CAS that ends early", "a verb that ends too early", raw({head(kind_of(VerbKind::kCas), 0), 0}));
  add("a masked CAS that ends early", "a verb that ends too early",
      raw({head(kind_of(VerbKind::kMaskedCas), 0), 0, 0, 0}));
  add("a READ without a size", "a verb that ends too early", raw({head(kind_of(VerbKind::kRead), 0)}));

  add("a READ across the end", "a READ outside of the region", FrameOf({good, read(region_bytes - 7, 8)}));
  add("a READ behind the end", "a READ outside of the region", FrameOf({good, read(region_bytes + 64, 8)}));
  add("a READ far behind", "a READ outside of the region", FrameOf({good, read((uint64_t{1} << 56) - 1, 8)}));
  add("a READ of everything", "a READ outside of the region", FrameOf({good, read(0, ~uint64_t{0})}));
  add("a READ that wraps around", "a READ outside of the region",
      FrameOf({good, read(64, ~uint64_t{0} - 63)}));
  add("a WRITE across the end", "a WRITE outside of the region",
      raw({head(kind_of(VerbKind::kWrite), region_bytes - 4), 8, 7}));
  add("a WRITE of more than came", "a WRITE of more bytes than came",
      raw({head(kind_of(VerbKind::kWrite), 0), 64, 7}));
  add("a WRITE of far more than came", "a WRITE outside of the region",
      raw({head(kind_of(VerbKind::kWrite), 0), ~uint64_t{0} - 3, 7}));
  for (const VerbKind kind : {VerbKind::kCas, VerbKind::kMaskedCas, VerbKind::kFaa}) {
    AtomicVerb atomic(kind, At(4), 0, 1);
    const std::string name(Name(kind));
    add(name + " that is not aligned", "an atomic that is not aligned", FrameOf({good, atomic.Lower()}));
    atomic.verb.at.offset = region_bytes;
    add(name + " behind the end", "an atomic outside of the region", FrameOf({good, atomic.Lower()}));
  }
  CallVerb call(NodeId{0}, CallId(1, 1), "request");
  add("a Call with company", "a Call with company", FrameOf({good, call.Lower()}));
  add("a Call with bits", "a Call with unknown bits",
      raw({head(kind_of(VerbKind::kCall), uint64_t{1} << 32), 0}));
  add("a Call of more than came", "a Call of more bytes than came",
      raw({head(kind_of(VerbKind::kCall), 0), uint64_t{1} << 40}));
  add("a FENCE with an address", "a FENCE with an address", raw({head(kind_of(VerbKind::kFence), 8), 5}));
  add("a FENCE of an id that no client has", "a FENCE of an impossible client",
      raw({head(kind_of(VerbKind::kFence), 0), uint64_t{1} << 32}));
  return frames;
}

// A good frame of some verbs.
inline Bytes RandomFrame(Random& random, uint64_t region_bytes) {
  static constexpr std::array<std::byte, 256> kPayload{};
  std::vector<Verb> verbs;
  const uint64_t count = random.Chance(1, 8) ? random.Between(1, 64) : random.Between(1, 4);
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t size = random.Below(257);
    const uint64_t offset = random.Below(region_bytes - size + 1);
    const FarAddr word = At(random.Below(region_bytes / 8) * 8);
    switch (random.Below(6)) {
      case 0: verbs.push_back(Read(At(offset), {static_cast<std::byte*>(nullptr), size}).Lower()); break;
      case 1: verbs.push_back(Write(At(offset), std::span(kPayload).first(size)).Lower()); break;
      case 2: verbs.push_back(Cas(word, random.Next(), random.Next()).Lower()); break;
      case 3: verbs.push_back(MaskedCas(word, 0, random.Next(), random.Next(), 1, 1).Lower()); break;
      case 4: verbs.push_back(Faa(word, random.Next()).Lower()); break;
      default: verbs.push_back(FenceVerb(NodeId{0}, ClientId{0xdead}).Lower()); break;
    }
  }
  return FrameOf(verbs);
}

// Changes some bytes to something else, or to what is likely to hurt; cuts or extends it now and then.
inline void Mutate(Random& random, Bytes& bytes) {
  const uint64_t changes = random.Between(1, 4);
  for (uint64_t i = 0; i < changes && !bytes.empty(); ++i) {
    const size_t at = random.Below(random.Chance(1, 2) ? std::min<size_t>(bytes.size(), 32) : bytes.size());
    switch (random.Below(5)) {
      case 0: bytes[at] = static_cast<std::byte>(random.Below(256)); break;
      case 1: bytes[at] ^= static_cast<std::byte>(1 << random.Below(8)); break;
      case 2: bytes[at] = std::byte{0xff}; break;
      case 3: bytes.resize(at); break;
      default: bytes.insert(bytes.begin() + static_cast<ptrdiff_t>(at), 8, std::byte{0}); break;
    }
  }
  // Often enough the length is right again, so that what follows the header is looked at.
  if (bytes.size() < sizeof(wire::FrameHeader) || random.Chance(1, 4)) return;
  auto header = wire::Load<wire::FrameHeader>(bytes.data());
  header.body_bytes = static_cast<uint32_t>(bytes.size() - sizeof(header));
  wire::Store(header, bytes.data());
}

}  // namespace farside::fabric::tcp
