#include "export/by_rank.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "dump/test_support.h"
#include "export/operators/model.h"

namespace profd::exporting {
namespace {

DumpInfo DumpOf(const std::string& name, std::optional<int> rank = {}) {
  DumpInfo dump;
  dump.name = name;
  dump.rank = rank;
  return dump;
}

std::vector<std::string> FoldersOf(const std::vector<DumpInfo>& dumps) {
  std::vector<const DumpInfo*> pointers;
  pointers.reserve(dumps.size());
  for (const DumpInfo& dump : dumps) pointers.push_back(&dump);
  return RankFolders(pointers);
}

using Names = std::vector<std::string>;

TEST(RankFolders, OnlyOfSeveralRanks) {
  EXPECT_EQ(FoldersOf({}), Names());
  EXPECT_EQ(FoldersOf({DumpOf("PROF_1", 0)}), Names());
  EXPECT_EQ(FoldersOf({DumpOf("PROF_1", 3), DumpOf("PROF_2", 3)}), Names());
  EXPECT_EQ(FoldersOf({DumpOf("PROF_1"), DumpOf("PROF_2")}), Names());
  EXPECT_EQ(FoldersOf({DumpOf("PROF_1", 1), DumpOf("PROF_2")}), Names());
  EXPECT_EQ(FoldersOf({DumpOf("PROF_1", 1), DumpOf("PROF_2", 0)}), (Names{"rank1", "rank0"}));
}

TEST(RankFolders, DumpsOfOneRankShareAFolderAndUnknownOnesHaveTheirName) {
  EXPECT_EQ(FoldersOf({DumpOf("PROF_1", 1), DumpOf("PROF_2", 0), DumpOf("PROF_3", 1), DumpOf("PROF_4"), DumpOf("PROF_4")}),
            (Names{"rank1", "rank0", "rank1", "PROF_4", "PROF_4_2"}));
}

// A dump of a node whose processes have several ranks has none of its own.
TEST(RankFolders, TheRankOfItsProcesses) {
  std::vector<DumpInfo> dumps = {DumpOf("PROF_1"), DumpOf("PROF_2"), DumpOf("PROF_3", 7)};
  for (DumpInfo& dump : dumps) dump.manifest.emplace();
  dumps[0].manifest->processes = {{1, 4, true, {0}, "a"}, {2, 4, true, {1}, "b"}};
  dumps[1].manifest->processes = {{1, 5, true, {0}, "a"}, {2, 6, true, {1}, "b"}};
  EXPECT_EQ(FoldersOf(dumps), (Names{"rank4", "PROF_2", "rank7"}));
}

// Writes the names of its dumps, and of those it got files of.
class NamesFormat : public Format {
 public:
  std::string_view name() const override { return "names"; }
  bool Wants(TableId) const override { return true; }
  FormatWants wants() const override { return {.events = true, .operators = true}; }
  Status Begin(const ExportPlan& plan) override {
    plan_ = &plan;
    for (const DumpInfo* dump : plan.dumps) text_ += dump->name + " ";
    return plan.dumps.front()->name == fails ? Internal("no space") : Status::Ok();
  }
  Result<std::unique_ptr<FormatSink>> Open(const ExportTask& task) override {
    text_ += "+" + plan_->dumps[task.dump]->name;
    return std::unique_ptr<FormatSink>(std::make_unique<Sink>(&text_));
  }
  Status TakeOperators(size_t dump, const operators::Model&) override {
    text_ += "*" + plan_->dumps[dump]->name;
    return Status::Ok();
  }
  Status End(bool complete, std::vector<OutputFile>* files) override {
    if (!complete) return Status::Ok();
    const std::string path = plan_->out_dir + "/names";
    std::ofstream(path) << text_;
    files->push_back({path, text_.size(), 1});
    return Status::Ok();
  }
  static inline std::string fails;

 private:
  struct Sink : FormatSink {
    explicit Sink(std::string* out) : text(out) {}
    void Take(const Batch&) override {}
    void TakeEvent(const Event& event) override { *text += "!" + event.name; }
    Status Finish() override { return Status::Ok(); }
    std::string* text;
  };
  const ExportPlan* plan_ = nullptr;
  std::string text_;
};

class ByRankTest : public ::testing::Test {
 protected:
  void SetUp() override { NamesFormat::fails.clear(); }
  // Every dump has a file with one event, then operators.
  Status Export(const std::vector<DumpInfo>& dumps, bool whole) {
    auto format = MakeByRank([]() -> std::unique_ptr<Format> { return std::make_unique<NamesFormat>(); }, whole);
    ExportPlan plan;
    plan.out_dir = dir_.path();
    for (const DumpInfo& dump : dumps) plan.dumps.push_back(&dump);
    files_.clear();
    Status status = format->Begin(plan);
    EXPECT_TRUE(format->wants().events && format->wants().operators && format->name() == "names");
    const operators::Model model(operators::HostData([](uint64_t) { return 0; }, 0, false), true);
    for (size_t i = 0; status.ok() && i < dumps.size(); ++i) {
      auto sink = format->Open({i, nullptr, nullptr});
      Event event;
      event.name = "e" + std::to_string(i);
      (*sink)->TakeEvent(event);
      EXPECT_TRUE((*sink)->Finish().ok());
      EXPECT_TRUE(format->TakeOperators(i, model).ok());
    }
    Status ended = format->End(status.ok(), &files_);
    return status.ok() ? ended : status;
  }
  std::string Read(const std::string& path) { return ReadText(dir_ / path); }
  TempDir dir_;
  std::vector<OutputFile> files_;
};

TEST_F(ByRankTest, OneRankIsWrittenAsEver) {
  ASSERT_TRUE(Export({DumpOf("a", 1), DumpOf("b", 1)}, true).ok());
  ASSERT_EQ(files_.size(), 1u);
  EXPECT_EQ(Read("names"), "a b +a!e0*a+b!e1*b");
}

TEST_F(ByRankTest, SeveralRanksHaveFoldersAndTheRunItsOwnFile) {
  ASSERT_TRUE(Export({DumpOf("a", 1), DumpOf("b", 0), DumpOf("c", 1)}, true).ok());
  EXPECT_EQ(files_.size(), 3u);
  EXPECT_EQ(files_.front().path, dir_ / "names") << "the run's first";
  EXPECT_EQ(Read("names"), "a b c +a!e0*a+b!e1*b+c!e2*c");
  EXPECT_EQ(Read("rank1/names"), "a c +a!e0*a+c!e2*c");
  EXPECT_EQ(Read("rank0/names"), "b +b!e1*b");
}

TEST_F(ByRankTest, WithoutAFileOfTheRun) {
  ASSERT_TRUE(Export({DumpOf("a", 1), DumpOf("b", 0)}, false).ok());
  EXPECT_EQ(files_.size(), 2u);
  EXPECT_FALSE(std::filesystem::exists(dir_ / "names"));
  EXPECT_EQ(Read("rank1/names"), "a +a!e0*a");
}

TEST_F(ByRankTest, AFormatThatFailsLeavesNoFolder) {
  NamesFormat::fails = "b";
  EXPECT_EQ(Export({DumpOf("a", 1), DumpOf("b", 0)}, true).message(), "no space");
  EXPECT_TRUE(files_.empty());
  EXPECT_TRUE(std::filesystem::is_empty(dir_.path()));
}

}  // namespace
}  // namespace profd::exporting
