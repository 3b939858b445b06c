// What the data files of a dump lack of what was written: by its manifest, where there is none by the .done beside a slice.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "dump/reader.h"
#include "export/dump_info.h"

namespace profd::exporting {

// Fills DataFile::Slice::missing. Returns what is damaged, by channel. `files`: all of the dump.
std::map<std::string, std::string> CompareSizes(const DumpReader& reader, const std::vector<DumpReader::File>& files, DumpInfo* info);

}  // namespace profd::exporting
