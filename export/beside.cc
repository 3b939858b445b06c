#include "export/beside.h"

#include <system_error>
#include <thread>
#include <vector>

namespace profd::exporting {

void RunBeside(size_t count, const std::function<void(size_t)>& run) {
  if (count == 0) return;
  std::vector<std::thread> threads;
  size_t next = 1;
  for (; next < count; ++next) {
    try {
      threads.emplace_back(run, next);
    } catch (const std::system_error&) {
      break;
    }
  }
  run(0);
  for (; next < count; ++next) run(next);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace profd::exporting
