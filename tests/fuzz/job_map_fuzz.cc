// Input: the files of a scheduler's job map folder (file_tree.h), links among them. Job ids come
// out as labels, none twice, no more than are allowed.
#include <set>

#include "daemon/attribution/job_map.h"
#include "daemon/attribution/label_text.h"
#include "tests/fuzz/file_tree.h"

namespace profd {

void fuzz::Run(Input input) {
  static fuzz::TreeDirectory tree;
  tree.Clear();
  fuzz::ForEachFile(input.rest(), [](std::string_view path, std::string_view content) {
    tree.Write(path, content);
  });
  Result<JobMap> map = ReadJobMap(tree.path(), 0);
  FUZZ_EXPECT(map.ok());
  for (const auto& [npu, jobs] : map->jobs) {
    FUZZ_EXPECT(npu >= 0 && npu < 1024);
    FUZZ_EXPECT(jobs.size() <= kMaxMapJobs);
    for (const std::string& job : jobs) {
      FUZZ_EXPECT(!job.empty() && job.size() <= kMaxLabelBytes && LabelText(job) == job);
    }
    FUZZ_EXPECT(std::set<std::string>(jobs.begin(), jobs.end()).size() == jobs.size());
  }
  FUZZ_EXPECT(map->ignored.size() <= kMaxMapFiles + 1);
  const std::string label = LabelText(input.rest());
  FUZZ_EXPECT(label.size() <= kMaxLabelBytes && LabelText(label) == label);
  for (char c : label) FUZZ_EXPECT(static_cast<unsigned char>(c) >= 0x20 && c != 0x7F);
}

}  // namespace profd
