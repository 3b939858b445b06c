#include "daemon/last_words.h"

#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <new>
#include <string_view>
#include <system_error>

namespace profd {
namespace {

constexpr std::string_view kNoMemory =
    "profd: the system gives no more memory (ulimit -v, MemoryMax= of the unit, or the machine has none left). profd "
    "ends; the next start completes its dumps and continues the sessions. Raise the limit or record less\n";
constexpr std::string_view kNoThread =
    "profd: the system gives no more threads (ulimit -u, ulimit -v, TasksMax= of the unit). profd ends; the next start "
    "completes its dumps and continues the sessions. Raise the limit\n";

// Nothing here may allocate.
[[noreturn]] void End(std::string_view words) {
  // A failure of this cannot be reported.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, words.data(), words.size());
  ::_exit(1);
}

[[noreturn]] void OnTerminate() {
  if (const std::exception_ptr current = std::current_exception(); current != nullptr) {
    try {
      std::rethrow_exception(current);
    } catch (const std::bad_alloc&) {
      End(kNoMemory);
    } catch (const std::system_error& error) {
      if (error.code() == std::errc::resource_unavailable_try_again) End(kNoThread);
    } catch (...) {  // a mistake of ours: the core dump is wanted
    }
  }
  std::abort();
}

}  // namespace

void EndCleanlyWithoutMemory() {
  std::set_terminate(OnTerminate);
}

}  // namespace profd
