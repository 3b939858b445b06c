#include "client/libprofd/mspti/mspti_library.h"

namespace profd::lib::mspti {

std::string MsptiLibrary::Load(MsptiLibrary* library) {
  std::string why;
  void* const handle = OpenVendorLibrary(kLibrary, {"lib64", "tools/mspti/lib64"}, &why);
  if (handle == nullptr) return why;
  FindFunction(handle, kSubscribeName, &library->subscribe_);
  FindFunction(handle, kUnsubscribeName, &library->unsubscribe_);
  FindFunction(handle, kRegisterCallbacksName, &library->register_callbacks_);
  FindFunction(handle, kEnableName, &library->enable_);
  FindFunction(handle, kDisableName, &library->disable_);
  FindFunction(handle, kFlushAllName, &library->flush_all_);
  FindFunction(handle, kIsEnabledName, &library->is_enabled_);
  if (library->subscribe_ == nullptr || library->unsubscribe_ == nullptr ||
      library->register_callbacks_ == nullptr || library->enable_ == nullptr ||
      library->disable_ == nullptr || library->flush_all_ == nullptr) {
    return std::string(kLibrary) + " lacks functions of MSPTI";
  }
  return {};
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
