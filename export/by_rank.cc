#include "export/by_rank.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace profd::exporting {
namespace {

// One file's rows to the formats of its rank and of the complete run.
class SharedSink : public FormatSink {
 public:
  explicit SharedSink(std::vector<std::unique_ptr<FormatSink>> sinks) : sinks_(std::move(sinks)) {}
  void Take(const Batch& batch) override {
    for (const auto& sink : sinks_) sink->Take(batch);
  }
  void TakeEvent(const Event& event) override {
    for (const auto& sink : sinks_) sink->TakeEvent(event);
  }
  Status Finish() override {
    Status first;
    for (const auto& sink : sinks_) {
      Status finished = sink->Finish();
      if (first.ok()) first = std::move(finished);
    }
    return first;
  }

 private:
  std::vector<std::unique_ptr<FormatSink>> sinks_;
};

class ByRank : public Format {
 public:
  ByRank(FormatMaker make, bool whole) : make_(make), whole_(whole), all_(make()) {}

  std::string_view name() const override { return all_->name(); }
  bool Wants(TableId table) const override { return all_->Wants(table); }
  FormatWants wants() const override { return all_->wants(); }

  Status Begin(const ExportPlan& plan) override {
    const std::vector<std::string> folders = RankFolders(plan.dumps);
    if (folders.empty()) return all_->Begin(plan);
    std::map<std::string, size_t> known;  // index of parts_
    for (size_t dump = 0; dump < folders.size(); ++dump) {
      const auto [it, is_new] = known.try_emplace(folders[dump], parts_.size());
      if (is_new) RETURN_IF_ERROR(AddPart(plan, folders[dump]));
      std::vector<const DumpInfo*>& dumps = parts_[it->second]->plan.dumps;
      places_.push_back({it->second, dumps.size()});
      dumps.push_back(plan.dumps[dump]);
    }
    if (whole_) RETURN_IF_ERROR(all_->Begin(plan));
    for (const auto& part : parts_) RETURN_IF_ERROR(part->format->Begin(part->plan));
    return Status::Ok();
  }

  Result<std::unique_ptr<FormatSink>> Open(const ExportTask& task) override {
    if (parts_.empty()) return all_->Open(task);
    ExportTask of_part = task;
    of_part.dump = places_[task.dump].number;
    std::vector<std::unique_ptr<FormatSink>> sinks;
    auto sink = parts_[places_[task.dump].part]->format->Open(of_part);
    if (!sink.ok()) return sink.status();
    sinks.push_back(std::move(*sink));
    if (whole_) {
      sink = all_->Open(task);
      if (!sink.ok()) return sink.status();
      sinks.push_back(std::move(*sink));
    }
    return std::unique_ptr<FormatSink>(std::make_unique<SharedSink>(std::move(sinks)));
  }

  Status TakeOperators(size_t dump, const operators::Model& model) override {
    if (whole_ || parts_.empty()) RETURN_IF_ERROR(all_->TakeOperators(dump, model));
    if (parts_.empty()) return Status::Ok();
    return parts_[places_[dump].part]->format->TakeOperators(places_[dump].number, model);
  }

  // One that fails takes the others' files with it: the format has failed.
  Status End(bool complete, std::vector<OutputFile>* files) override {
    std::vector<OutputFile> made;
    Status status;
    const auto end = [&](Format& format) {
      Status ended = format.End(complete && status.ok(), &made);
      if (status.ok()) status = std::move(ended);
    };
    if (whole_ || parts_.empty()) end(*all_);
    for (const auto& part : parts_) end(*part->format);
    if (!complete || !status.ok()) {
      for (const OutputFile& file : made) ::unlink(file.path.c_str());
      made.clear();
    }
    for (const auto& part : parts_) ::rmdir(part->plan.out_dir.c_str());  // one that stayed empty
    files->insert(files->end(), made.begin(), made.end());
    return status;
  }

 private:
  struct Part {
    ExportPlan plan;
    std::unique_ptr<Format> format;
  };
  struct PlaceOfDump {
    size_t part = 0;
    size_t number = 0;  // in the part's plan
  };

  Status AddPart(const ExportPlan& plan, const std::string& folder) {
    auto part = std::make_unique<Part>(Part{plan, make_()});
    part->plan.dumps.clear();
    part->plan.out_dir += "/" + folder;
    const std::string& dir = part->plan.out_dir;
    if (::mkdir(dir.c_str(), 0750) != 0 && errno != EEXIST) return Status::FromErrno(errno, "creating " + dir);
    parts_.push_back(std::move(part));
    return Status::Ok();
  }

  FormatMaker make_;
  bool whole_;
  std::unique_ptr<Format> all_;  // of one place; with `whole_` also of the complete run
  std::vector<std::unique_ptr<Part>> parts_;
  std::vector<PlaceOfDump> places_;  // by dump; none without parts
};

}  // namespace

std::vector<std::string> RankFolders(const std::vector<const DumpInfo*>& dumps) {
  std::vector<std::optional<int>> ranks;
  std::set<int> known;
  for (const DumpInfo* dump : dumps) {
    ranks.push_back(dump->RankOf(-1));
    if (ranks.back()) known.insert(*ranks.back());
  }
  if (known.size() < 2) return {};
  std::vector<std::string> folders;
  std::set<std::string> names;
  for (size_t i = 0; i < dumps.size(); ++i) {
    if (ranks[i]) {
      folders.push_back("rank" + std::to_string(*ranks[i]));
      continue;
    }
    std::string name = dumps[i]->name;
    for (int n = 2; !names.insert(name).second; ++n) name = dumps[i]->name + "_" + std::to_string(n);
    folders.push_back(name);
  }
  return folders;
}

std::unique_ptr<Format> MakeByRank(FormatMaker make, bool whole) { return std::make_unique<ByRank>(make, whole); }

}  // namespace profd::exporting
