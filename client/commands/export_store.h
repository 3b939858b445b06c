// `profctl export RUN... --to clickhouse://...`: runs of any kind into the tables of a database.
#pragma once

#include "client/commands/export_parse.h"
#include "client/context.h"

namespace profd::client {

// Whether --to is a database's address.
bool IsExportToStore(const ExportCommand& command);

// What is given and is for files alone, as a sentence.
std::optional<std::string> UnfitForStore(const ExportCommand& command);

int RunExportToStore(const Io& io, const Clock& clock, const ExportCommand& command, bool json);

}  // namespace profd::client
