// Names in PROF directories: folders, our own files, and data files (dump-format 1.1 and section 2;
// today's names and the two historical ones).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "driver/abi/channels.h"

namespace profd {

// The vendor's analyser descends into every folder of a dump but those of its skip list, and one
// it cannot make sense of ends its complete export. May a folder of this name be directly in a dump?
bool IsTopFolder(std::string_view name);

// Our own files are in this folder. Dumps of earlier versions have it directly in the dump;
// everything that reads a dump calls its files by today's path.
inline constexpr std::string_view kHostFolder = "host";
inline constexpr std::string_view kOwnFolder = "profd";  // in host/
inline constexpr std::string_view kOwnPrefix = "host/profd/";
inline constexpr std::string_view kOldOwnPrefix = "profd/";
// The folder of a device, or of the host (-1), and back; nothing for other names.
std::string FolderOf(int device);
std::optional<int> DeviceOfFolder(std::string_view name);
// `path` itself unless it is one of earlier versions.
std::string TodaysPath(std::string path);
// "marks.tsv" of "host/profd/marks.tsv"; empty for paths elsewhere.
std::string_view OwnFileName(std::string_view path);

struct DataName {
  std::string base;  // "hbm.data"
  int device = -1;   // from the name; -1 = it has none
  uint64_t slice = 0;
  bool compressed = false;
};

// Nothing: no name of a data file, or that of one being made.
std::optional<DataName> ParseDataName(std::string_view name);
// The driver channel behind a device's file of this base name ("hbm.data"), whatever it is called on
// the chip; null for files of no channel.
const abi::ChannelFormat* FormatOfFile(std::string_view base);
// Whose a host file is; nothing for files of others than profd's collectors. `system`: each poll
// without error has one line with a timestamp.
struct HostFile {
  std::string_view collector;
  bool system = false;
};
HostFile HostFileOf(std::string_view base);
// Collectors without any write to samples.tsv.
bool HasHostFiles(std::string_view collector);
// Notes that lie beside data files: .done, .complete, .zip.
bool IsNoteName(std::string_view name);

}  // namespace profd
