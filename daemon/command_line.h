// profd's flags, exit codes and simulator switch.
#pragma once

namespace profd {

// Exit codes: 0 served and ended cleanly (or the check passed), 1 could not serve, 2 usage or
// configuration.
int RunDaemon(int argc, char** argv);

}  // namespace profd
