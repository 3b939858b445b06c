// Formats over a run of several ranks: each rank's files in a folder of its own, as if it had been exported alone, and
// those of the complete run beside the folders.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "export/format.h"

namespace profd::exporting {

// By dump: the folder its rank's files go to. Empty: the dumps have no two ranks that are known, all go to one place.
// "rank3"; of a dump whose rank is not known, or that has several, its name ("PROF_..._2" where it occurs again).
std::vector<std::string> RankFolders(const std::vector<const DumpInfo*>& dumps);

using FormatMaker = std::unique_ptr<Format> (*)();

// Of a run of one rank what `make` makes. Of one of several: one format for each folder of RankFolders, and with
// `whole` one for all of them beside.
std::unique_ptr<Format> MakeByRank(FormatMaker make, bool whole);

}  // namespace profd::exporting
