#pragma once

#include <chrono>
#include <functional>
#include <thread>

namespace profd {

// Waits for what another thread or process does; false only after a minute.
inline bool Eventually(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace profd
