// Runs profd-probe, which opens one of the vendor's libraries in a process of its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "client/selftest/selftest.h"

namespace profd::client::selftest {

// The program beside this one, or where packages put it; empty: it is not installed.
std::string FindProbe();

// Ended when it has not answered in time (kDeadlineExceeded). kUnavailable: it crashed.
inline constexpr int64_t kProbeDeadlineMs = 15'000;
ProbeAnswer RunProbe(const std::string& program, const std::vector<std::string>& arguments, int64_t deadline_ms = kProbeDeadlineMs);

// Of what it printed; lines beyond the bounds are left out.
ProbeAnswer ParseProbe(const std::string& text);

}  // namespace profd::client::selftest
