// The control files of one place of a PROF directory as facts (dump-format 1.3-1.6). They may be of
// any collector's version: values are numbers or texts, keys may be missing, the text may be
// garbage.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "export/dump_info.h"

namespace profd::exporting {

// Each takes the values of the text, and reports in `problems` (file set to `path`) what it lacks.
struct ControlReader {
  DumpInfo* dump;
  Place* place;
  std::vector<DumpInfo::Problem>* problems;

  void InfoJson(const std::string& path, std::string_view text_untrusted);
  void SampleJson(const std::string& path, std::string_view text_untrusted);
  void StartInfo(const std::string& path, std::string_view text_untrusted);
  void EndInfo(const std::string& path, std::string_view text_untrusted);
  void HostStart(const std::string& path, std::string_view text_untrusted);
  void DevStart(const std::string& path, std::string_view text_untrusted);

 private:
  void HostFrequency(const std::string& path, std::string_view text_untrusted);
  void Broken(const std::string& path, std::string what);
};

}  // namespace profd::exporting
