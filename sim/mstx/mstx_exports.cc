// The C symbols of libms_tools_ext.so: the same calls for who does not include the header, through
// one context of this object's.
#include "sim/mstx/mstx.h"

namespace mstx = profd::sim::mstx;

PROFD_SIM_EXPORT void mstxMarkA(const char* message, void* stream) { mstx::Mark(message, stream); }
PROFD_SIM_EXPORT uint64_t mstxRangeStartA(const char* message, void* stream) {
  return mstx::RangeStart(message, stream);
}
PROFD_SIM_EXPORT void mstxRangeEnd(uint64_t id) { mstx::RangeEnd(id); }
PROFD_SIM_EXPORT int mstxGetToolId(uint64_t* id) { return mstx::GetToolId(id); }
PROFD_SIM_EXPORT void* mstxDomainCreateA(const char* name) { return mstx::DomainCreate(name); }
PROFD_SIM_EXPORT void mstxDomainDestroy(void* domain) { mstx::DomainDestroy(domain); }
PROFD_SIM_EXPORT void mstxDomainMarkA(void* domain, const char* message, void* stream) {
  mstx::DomainMark(domain, message, stream);
}
PROFD_SIM_EXPORT uint64_t mstxDomainRangeStartA(void* domain, const char* message, void* stream) {
  return mstx::DomainRangeStart(domain, message, stream);
}
PROFD_SIM_EXPORT void mstxDomainRangeEnd(void* domain, uint64_t id) {
  mstx::DomainRangeEnd(domain, id);
}
