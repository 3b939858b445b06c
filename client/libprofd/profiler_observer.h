// Notices other profilers in this process: libprofapi notifies every module of the commands that switch
// profiling on and off, whichever profiler gives them. MSPTI and the vendor's other profilers take each other's data
// silently, so a collector does not begin, or steps back, while one of them runs.
//
// One for the plug-in, since the registration cannot be taken back and brings no pointer of ours.
#pragma once

#include <cstdint>
#include <string>

namespace profd::lib {

class ProfilerObserver {
 public:
  // Registers as soon as libprofapi is there. True: just now; it may still replay, on a thread of its own,
  // what was switched on before.
  static bool Register();
  // Another one has switched profiling on, and not yet off.
  static bool SeesAnother();
  // Who profiles this process besides us, also by other signs; empty: none that we see.
  static std::string Others();
  static constexpr char kAnother[] = "another profiler of the vendor's runs in this process";
  // While MSPTI is ours, what it may switch on is ours. It does so on the application's threads too, when they set a
  // device.
  static void ExpectMspti(bool on);
  // While aclprof is ours. The vendor lets none of its profilers begin beside it but MSPTI, whose client then gets what
  // the host reports, and aclprof does not.
  static void ExpectAclprof(bool on);
  // Since that was last switched on a client of MSPTI has begun.
  static bool MetMspti();

  // While it lives, commands given on this thread are ours.
  class OwnCalls {
   public:
    OwnCalls();
    ~OwnCalls();
    OwnCalls(const OwnCalls&) = delete;
    OwnCalls& operator=(const OwnCalls&) = delete;

   private:
    const bool before_;
  };
};

}  // namespace profd::lib
