// `profctl verify DUMP...`: is a dump valid? Reads directories of this machine; needs no daemon.
#pragma once

#include <string>
#include <vector>

#include "client/context.h"

namespace profd::client {

struct VerifyOptions {
  std::vector<std::string> dumps;  // directories
  bool quiet = false;              // only what is wrong
  bool verbose = false;            // a row for each file
};

// Continues with the others whatever is wrong with one. kExitOk only if every dump holds in everything
// that could be checked; kExitPartial otherwise, also when one cannot be read; kExitNotFound if one of
// them is not a dump.
int RunVerify(const Io& io, const VerifyOptions& options, bool json);

}  // namespace profd::client
