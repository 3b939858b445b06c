// What is left to do when the process gets no more memory or threads.
#pragma once

namespace profd {

// Before the first thread. An allocation or a thread that the system refuses ends the process with a line that reports
// so, instead of a core dump: nothing that hung on it can go on, dumps are readable up to the last flush at every
// instant, and the next start completes them and continues their sessions.
void EndCleanlyWithoutMemory();

}  // namespace profd
