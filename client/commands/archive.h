// `profctl archive`: loads the dumps that wait in profd's queue ([archive]) into ClickHouse, one after the other. It is what
// profd-archive.service runs, as a user of its own: parsing dumps and speaking HTTP with a password need no rights.
#pragma once

#include <string>

#include "client/context.h"
#include "client/endpoint.h"

namespace profd::client {

struct ArchiveOptions {
  // Where dumps lie while they are loaded; nothing of another program is in it.
  std::string work_dir = "/var/lib/profd-archive";
  std::string every = "10s";
  // What waits now, then ends.
  bool once = false;
  TlsFiles tls;  // of the command line, for the database
};

int RunArchive(const Context& context, const ArchiveOptions& options);

}  // namespace profd::client
