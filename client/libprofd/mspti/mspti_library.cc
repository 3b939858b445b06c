#include "client/libprofd/mspti/mspti_library.h"

namespace profd::lib::mspti {

std::string MsptiLibrary::Load(MsptiLibrary* library) {
  std::string why;
  void* const handle = OpenVendorLibrary(kLibrary, {"lib64", "tools/mspti/lib64"}, &why);
  if (handle == nullptr) return why;
  FindFunction(handle, "msptiActivityIsEnabled", &library->is_enabled_);
  const bool complete = FindFunction(handle, "msptiSubscribe", &library->subscribe_) &&
                        FindFunction(handle, "msptiUnsubscribe", &library->unsubscribe_) &&
                        FindFunction(handle, "msptiActivityRegisterCallbacks", &library->register_callbacks_) &&
                        FindFunction(handle, "msptiActivityEnable", &library->enable_) &&
                        FindFunction(handle, "msptiActivityDisable", &library->disable_) &&
                        FindFunction(handle, "msptiActivityFlushAll", &library->flush_all_);
  return complete ? std::string() : std::string(kLibrary) + " lacks functions of MSPTI";
}

Called MsptiLibrary::Subscribe() {
  return Guarded([this] { return subscribe_(&subscriber_, nullptr, nullptr); });
}
Called MsptiLibrary::RegisterCallbacks(RequestFunction request, CompleteFunction complete) {
  return Guarded([&] { return register_callbacks_(request, complete); });
}
Called MsptiLibrary::Enable(Kind kind) {
  return Guarded([&] { return enable_(kind); });
}
Called MsptiLibrary::Disable(Kind kind) {
  return Guarded([&] { return disable_(kind); });
}
Called MsptiLibrary::FlushAll() {
  return Guarded([this] { return flush_all_(0); });
}
Called MsptiLibrary::Unsubscribe() {
  return Guarded([this] { return unsubscribe_(subscriber_); });
}

}  // namespace profd::lib::mspti
