// The text of each thread's last error. Not a thread_local: its destructor would run before the
// thread's last calls, and its bytes would be part of every thread's stack.
#pragma once

#include <string>

namespace profd::lib {

// Empty = no error. Does nothing without memory.
void SetLastError(const std::string& text);
const char* LastError();

}  // namespace profd::lib
