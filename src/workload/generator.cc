#include "workload/generator.h"

namespace farside::workload {

Generator::Generator(const Shape& shape, Frontier& frontier, uint64_t client)
    : shape_(shape),
      frontier_(frontier),
      random_(Random(shape.seed).Fork(client)),
      zipfian_(shape.records),
      scramble_(shape.records) {}

Request Generator::Next() {
  const Action action = DrawAction();
  if (action == Action::kInsert) return {.action = action, .record = frontier_.Claim()};
  Request request{.action = action, .record = DrawRecord()};
  if (action == Action::kScan) request.length = 1 + static_cast<uint32_t>(random_.Below(kLongestScan));
  return request;
}

Action Generator::DrawAction() {
  uint64_t draw = random_.Below(100);
  for (size_t action = 0; action < kActions; ++action) {
    if (draw < shape_.mix.percent[action]) return static_cast<Action>(action);
    draw -= shape_.mix.percent[action];
  }
  return Action::kRead;
}

uint64_t Generator::DrawRecord() {
  switch (shape_.distribution) {
    case Distribution::kUniform: return random_.Below(frontier_.known());
    // Of the records that were loaded, so that the popular ones stay popular while others are inserted.
    case Distribution::kZipfian: return scramble_(zipfian_.Draw(random_));
    case Distribution::kLatest: {
      const uint64_t known = frontier_.known();
      zipfian_.Grow(known);
      return known - 1 - zipfian_.Draw(random_);
    }
  }
  return 0;
}

}  // namespace farside::workload
