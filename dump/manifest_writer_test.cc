#include "dump/manifest_writer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <future>

#include "dump/parts_test_support.h"

namespace profd {
namespace {

using ManifestWriterTest = DumpPartsTest;

TEST_F(ManifestWriterTest, IsDueWhenItIsTouchedButNotOften) {
  EXPECT_FALSE(manifest_writer_.TakeDue());
  manifest_writer_.Touch();
  EXPECT_TRUE(manifest_writer_.TakeDue());
  EXPECT_FALSE(manifest_writer_.TakeDue());
  manifest_writer_.Touch();
  clock_.Advance(9 * kNsPerSecond);
  EXPECT_FALSE(manifest_writer_.TakeDue());
  clock_.Advance(kNsPerSecond);
  EXPECT_TRUE(manifest_writer_.TakeDue());
  clock_.Advance(20 * kNsPerSecond);
  EXPECT_FALSE(manifest_writer_.TakeDue());
  manifest_writer_.TouchNow();
  EXPECT_TRUE(manifest_writer_.TakeDue());
  manifest_writer_.TouchNow();
  EXPECT_TRUE(manifest_writer_.TakeDue());
}

TEST_F(ManifestWriterTest, WithoutASyncThreadItIsInPlaceAtOnce) {
  for (const std::string text : {"first", "second one"}) {
    ASSERT_TRUE(manifest_writer_.Put(text, true).ok());
    EXPECT_EQ(Text("profd_manifest.json"), text);
    EXPECT_EQ(manifest_writer_.bytes(), text.size());
  }
  EXPECT_EQ(FilesBelow(folders_.path()), std::set<std::string>{"profd_manifest.json"});
}

class FailingSync : public DumpIo {
 public:
  int Sync(int fd) override {
    if (!fails) return DumpIo::Sync(fd);
    errno = EIO;
    return -1;
  }
  std::atomic<bool> fails{false};
};

struct SyncThread {
  FailingSync disk_;
  DumpSync thread_{disk_};
};

class SyncedManifestTest : public SyncThread, public DumpPartsTest {
 protected:
  SyncedManifestTest() : DumpPartsTest(&thread_) {}
  void WaitForThread() {
    std::promise<void> done;
    thread_.Then({}, nullptr, [&done] { done.set_value(); });
    done.get_future().wait();
  }
};

TEST_F(SyncedManifestTest, TheOldOneStaysUntilTheNewOneIsOnTheDisk) {
  ASSERT_TRUE(manifest_writer_.Put("old", false).ok());
  disk_.fails = true;
  ASSERT_TRUE(manifest_writer_.Put("never", true).ok());
  WaitForThread();
  EXPECT_EQ(Text("profd_manifest.json"), "old");
  disk_.fails = false;
  ASSERT_TRUE(manifest_writer_.Put("new", true).ok());
  WaitForThread();
  EXPECT_EQ(Text("profd_manifest.json"), "new");
  EXPECT_EQ(FilesBelow(folders_.path()), std::set<std::string>{"profd_manifest.json"});
}

}  // namespace
}  // namespace profd
