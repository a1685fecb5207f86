#include "fabric/verb.h"

namespace farside::fabric {

std::string_view Name(VerbKind kind) {
  switch (kind) {
    case VerbKind::kRead: return "READ";
    case VerbKind::kWrite: return "WRITE";
    case VerbKind::kCas: return "CAS";
    case VerbKind::kMaskedCas: return "MCAS";
    case VerbKind::kFaa: return "FAA";
    case VerbKind::kCall: return "CALL";
    case VerbKind::kFence: return "FENCE";
  }
  return "?";
}

std::string_view Name(Purpose purpose) {
  switch (purpose) {
    case Purpose::kIndex: return "index";
    case Purpose::kBlock: return "block";
    case Purpose::kMaintenance: return "maintenance";
  }
  return "?";
}

}  // namespace farside::fabric
