#include "daemon/dumps/state_saver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <map>
#include <vector>

#include "base/manual_executor.h"
#include "daemon/data/dump_writer.h"
#include "dump/test_support.h"

namespace profd {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

class StateSaverTest : public ::testing::Test {
 protected:
  StateSaverTest() : writer_(DumpRoot::Open(tmp_ / "root").value(), system_, pool_, {.min_free_bytes = 0}) {}

  // The disk does not answer until Release.
  void Hang() {
    writer_.Post([wait = hang_.get_future().share()] { wait.wait(); });
  }
  // What is stored when the writer comes here.
  void Look() {
    writer_.Post([this] {
      seen_.push_back(store_.LoadSessions().value());
      files_.push_back(store_.Load(kTuningFile).value());
    });
  }
  void Release() {
    hang_.set_value();
    std::promise<void> done;
    writer_.Post([&done] { done.set_value(); });
    done.get_future().wait();
  }

  TempDir tmp_;
  ManualClock clock_;
  ManualExecutor time_{clock_};
  Strand control_{time_.executor()};
  SystemClock system_;
  BlockPool pool_{8 << 20};
  StateStore store_{tmp_ / "state"};
  std::promise<void> hang_;
  std::vector<std::map<std::string, std::string>> seen_;
  std::vector<std::string> files_;
  DumpWriter writer_;
  WriterStateSaver saver_{control_, writer_, store_};
};

// Sessions are saved every few seconds, however long the disk takes.
TEST_F(StateSaverTest, OfWhatWaitsOnlyTheNewestIsKept) {
  Hang();
  saver_.SaveSession("0123456789ab", "1");
  saver_.SaveSession("0123456789cd", "1");
  Look();
  saver_.SaveSession("0123456789ab", "2");
  saver_.SaveSession("0123456789ab", "3");
  saver_.DropSession("0123456789cd");
  Release();
  EXPECT_THAT(seen_, ElementsAre(ElementsAre(Pair("0123456789ab", "3"))));
  hang_ = {};
  Hang();
  saver_.DropSession("0123456789ab");
  saver_.SaveSession("0123456789ab", "4");
  Look();
  saver_.DropSession("0123456789ab");
  Release();
  EXPECT_THAT(seen_.back(), IsEmpty());
}

TEST_F(StateSaverTest, EachSaveIsAnswered) {
  Hang();
  int answered = 0;
  saver_.Save(kTuningFile, "1", [&answered] { ++answered; });
  Look();
  saver_.Save(kTuningFile, "2", nullptr);
  saver_.Save(kTuningFile, "3", [&answered] { ++answered; });
  time_.RunReady();
  EXPECT_EQ(answered, 0);
  Release();
  time_.RunReady();
  EXPECT_EQ(answered, 2);
  EXPECT_THAT(files_, ElementsAre("3"));
}

}  // namespace
}  // namespace profd
