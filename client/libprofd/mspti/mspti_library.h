// libmspti.so as it was found in this process.
#pragma once

#include <string>

#include "client/libprofd/mspti/mspti_abi.h"
#include "client/libprofd/vendor_library.h"

namespace profd::lib::mspti {

class MsptiLibrary {
 public:
  // Empty: loaded, and never closed. Otherwise why there is none.
  static std::string Load(MsptiLibrary* library);

  Called Subscribe();
  Called RegisterCallbacks(RequestFunction request, CompleteFunction complete);
  Called Enable(Kind kind);
  Called Disable(Kind kind);
  Called FlushAll();
  Called Unsubscribe();

  // 2026-05 and later; the strings of those versions outlive the complete callback.
  bool has_is_enabled() const { return is_enabled_ != nullptr; }

 private:
  SubscribeFunction subscribe_ = nullptr;
  UnsubscribeFunction unsubscribe_ = nullptr;
  RegisterCallbacksFunction register_callbacks_ = nullptr;
  KindFunction enable_ = nullptr;
  KindFunction disable_ = nullptr;
  FlushAllFunction flush_all_ = nullptr;
  IsEnabledFunction is_enabled_ = nullptr;
  Subscriber* subscriber_ = nullptr;
};

}  // namespace profd::lib::mspti
