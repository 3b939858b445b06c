// What the vendor's cluster analysis put together of all ranks (analysis 2.4): its `cluster_analysis_output`.
#include <fmt/format.h>

#include <array>
#include <map>

#include "analysis/read/csv_file.h"
#include "analysis/read/readers.h"
#include "base/text.h"

namespace profd::analysis {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMostClusterJson = uint64_t{2} << 30;
constexpr int kMostRank = 1'000'000;

class ClusterReader {
 public:
  ClusterReader(const fs::path& directory, const ReadOrder& order) : directory_(directory), order_(order) {}

  void Read() {
    ReadSteps();
    ReadJson("cluster_communication.json", ReadClusterCommunication);
    ReadJson("cluster_communication_matrix.json", ReadClusterMatrix);
  }
  void MoveTo(Ranks* ranks) {
    for (auto& [number, rank] : ranks_) ranks->push_back(std::move(rank));
  }

 private:
  Rank* RankOf(std::string_view text) {
    int number = 0;
    if (!ParseNumber(text, &number) || number < 0 || number > kMostRank) return nullptr;
    std::unique_ptr<Rank>& rank = ranks_[number];
    if (rank == nullptr) {
      rank = std::make_unique<Rank>();
      rank->rank = number;
      rank->source = "cluster analysis";
      rank->path = directory_.string();
    }
    return rank.get();
  }

  void ReadSteps() {
    const fs::path path = directory_ / kClusterSteps;
    std::error_code error;
    if (!fs::exists(path, error)) return;
    Result<CsvFile> file = CsvFile::Open(path);
    if (!file.ok()) return Tell(path, file.status().message());
    const int step = file->Column({"Step"});
    const int type = file->Column({"Type"});
    const int index = file->Column({"Index"});
    const std::array<int, 4> columns = {file->Column({"Computing"}), file->Column({"Communication"}),
                                        file->Column({"Communication(Not Overlapped)"}), file->Column({"Free"})};
    uint64_t bad = 0;
    while (file->Next()) {
      if (file->Field(type) != "rank") continue;  // a stage of the pipeline
      std::array<double, 4> us{};
      bool whole = true;
      for (size_t i = 0; i < us.size(); ++i) {
        const auto value = file->Number(columns[i]);
        whole = whole && value;
        us[i] = value.value_or(0);
      }
      Rank* rank = whole ? RankOf(file->Field(index)) : nullptr;
      if (rank == nullptr) {
        ++bad;
        continue;
      }
      // A run without steps has one line without a number.
      rank->shares[static_cast<int64_t>(file->Number(step).value_or(-1))] = {us[0] / 1000, us[1] / 1000, us[2] / 1000, us[3] / 1000};
    }
    if (bad > 0) Tell(path, fmt::format("{} lines make no sense: left out", bad));
    if (!file->status().ok()) Tell(path, file->status().message());
  }

  template <class Take>
  void ReadJson(const char* name, const Take& take) {
    const fs::path path = directory_ / name;
    std::error_code error;
    if (!fs::exists(path, error)) return;
    const Result<std::string> text = ReadWhole(path, kMostClusterJson);
    if (!text.ok()) return Tell(path, text.status().message());
    take(*text, path.string(), order_, [this](std::string_view number) { return RankOf(number); });
  }

  void Tell(const fs::path& path, std::string what) { order_.problems->push_back({path.string(), std::move(what)}); }

  const fs::path& directory_;
  const ReadOrder& order_;
  std::map<int, std::unique_ptr<Rank>> ranks_;
};

}  // namespace

bool IsCluster(const fs::path& directory) {
  std::error_code error;
  return fs::is_regular_file(directory / kClusterSteps, error);
}

Status ReadCluster(const fs::path& directory, const ReadOrder& order, Ranks* ranks) {
  ClusterReader reader(directory, order);
  reader.Read();
  reader.MoveTo(ranks);
  return Status::Ok();
}

}  // namespace profd::analysis
