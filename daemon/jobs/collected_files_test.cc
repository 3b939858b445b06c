#include "daemon/jobs/collected_files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>

#include "dump/test_support.h"

namespace profd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr uid_t kNobody = 65534;

UniqueFd Folder(const std::string& path) { return UniqueFd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)); }

// Calls a hook before each write.
class HookedIo : public DumpIo {
 public:
  ssize_t Write(int fd, const void* data, size_t size) override {
    if (hook) hook();
    return DumpIo::Write(fd, data, size);
  }
  std::function<void()> hook;
};

class CollectedFilesTest : public ::testing::Test {
 protected:
  CollectedFilesTest() {
    limits_.bytes = 10 << 20;
    limits_.free_bytes = 0;
    limits_.until_steady_ns = clock_.SteadyNs() + kNsPerSecond;
  }
  void Put(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(from_ / path).parent_path());
    WriteText(from_ / path, text);
  }
  CopiedFiles Copy(DumpIo& io = SystemDumpIo()) {
    return CopyTree({Folder(from_.path()).get(), ::geteuid(), Folder(to_.path()).get(), Myself()}, limits_, clock_, io);
  }
  static std::vector<std::string> Why(const CopiedFiles& copied) {
    std::vector<std::string> lines;
    for (const auto& left : copied.examples) lines.push_back(left.path + ": " + left.why);
    return lines;
  }

  TempDir from_, to_;
  ManualClock clock_;
  CopyLimits limits_;
};

TEST_F(CollectedFilesTest, FoldersAndFiles) {
  Put("PROF_000001/host/data/a.slice_0", std::string(3 << 20, 'a'));
  Put("PROF_000001/host/info.json", "{}");
  Put("PROF_000001/device_0/data/empty", "");
  ::chmod((from_ / "PROF_000001/host/info.json").c_str(), 0777);
  const CopiedFiles copied = Copy();
  EXPECT_TRUE(copied.status.ok()) << copied.status.ToString();
  EXPECT_EQ(copied.files, 3u);
  EXPECT_EQ(copied.bytes, (3u << 20) + 2);
  EXPECT_EQ(copied.left_out, 0u);
  EXPECT_EQ(FilesBelow(to_.path()), FilesBelow(from_.path()));
  EXPECT_EQ(ReadText(to_ / "PROF_000001/host/data/a.slice_0"), std::string(3 << 20, 'a'));
  struct stat info {};
  ASSERT_EQ(::stat((to_ / "PROF_000001/host/info.json").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0640u);
  ASSERT_EQ(::stat((to_ / "PROF_000001/host").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0750u);
}

TEST_F(CollectedFilesTest, ListsCopiedFiles) {
  Put("b/data", "12345");
  Put("c", "123456789");
  const CopiedFiles copied = Copy();
  ASSERT_EQ(copied.list.size(), 2u);
  EXPECT_EQ(copied.list[0].path, "c") << "files before folders";
  EXPECT_EQ(copied.list[0].bytes, 9u);
  EXPECT_EQ(copied.list[0].crc32c, 0xe3069283u) << "CRC-32C's own check value";
  EXPECT_EQ(copied.list[1].path, "b/data");
}

TEST_F(CollectedFilesTest, FindsTrainingStepsInTheStepTrace) {
  const auto text = [](const auto& record) { return std::string(reinterpret_cast<const char*>(record.data()), record.size()); };
  const std::string other(kStepRecordBytes, '\0');
  const std::string step = text(StepRecord(5, 1, 7, true));
  const std::string newest = text(StepRecord(16, 1, 7, false));
  // Slice 9 ends within a record, of which slice 10 has the rest.
  Put("P/device_0/data/ts_track.data.0.slice_9", other + step.substr(0, 13));
  Put("P/device_0/data/ts_track.data.0.slice_10", step.substr(13) + other + step);
  Put("P/device_0/data/ts_track.data.0.slice_10.done", "filesize:107\n");
  Put("P/device_0/data/ts_track.data.0.slice_11", other);
  Put("P/device_1/data/ts_track.data.1.slice_0", other + newest);
  Put("P/device_1/data/hbm.data.1.slice_0", step);
  std::map<std::string, std::optional<std::array<bool, kStepLayouts>>> steps;
  const CopiedFiles copied = Copy();
  EXPECT_TRUE(copied.status.ok()) << copied.status.ToString();
  for (const ProcessFile& file : copied.list) steps[file.path.substr(2)] = file.steps;
  using Steps = std::array<bool, kStepLayouts>;
  EXPECT_EQ(steps["device_0/data/ts_track.data.0.slice_9"], (Steps{false, false}));
  EXPECT_EQ(steps["device_0/data/ts_track.data.0.slice_10"], (Steps{true, false}));
  EXPECT_EQ(steps["device_0/data/ts_track.data.0.slice_11"], (Steps{false, false}));
  EXPECT_EQ(steps["device_1/data/ts_track.data.1.slice_0"], (Steps{false, true}));
  EXPECT_EQ(steps["device_0/data/ts_track.data.0.slice_10.done"], std::nullopt);
  EXPECT_EQ(steps["device_1/data/hbm.data.1.slice_0"], std::nullopt);
}

TEST_F(CollectedFilesTest, SearchForStepsEndsAtTheDeadline) {
  WriteText(to_ / "ts_track.data.0.slice_0", std::string(kStepRecordBytes, '\0'));
  std::vector<ProcessFile> list = {{"data/ts_track.data.0.slice_0", kStepRecordBytes, 0}};
  const Status late = FindSteps(Folder(to_.path()).get(), "data/", list, [] { return DeadlineExceeded("late"); });
  EXPECT_EQ(late.code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(list[0].steps, std::nullopt);
}

TEST_F(CollectedFilesTest, CopiesWithinTheDumpsLimit) {
  Put("folder/large", std::string(5 << 20, 'x'));
  Put("folder/small", "small");
  Put("small", "small");
  uint64_t left = 3 << 20;
  limits_.reserve = [&left](uint64_t bytes) {
    if (bytes > left) return ResourceExhausted("the dump may hold so much");
    left -= bytes;
    return Status::Ok();
  };
  const CopiedFiles copied = Copy();
  EXPECT_EQ(copied.status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(FilesBelow(to_.path()), ElementsAre("folder/small", "small")) << "what fits is copied";
  EXPECT_EQ(copied.left_out, 1u);
  EXPECT_EQ(copied.left_out_bytes, 5u << 20);
  EXPECT_EQ(left + copied.reserved, 3u << 20);
  EXPECT_GE(copied.reserved, copied.bytes);
  limits_.reserve = [](uint64_t) { return Unavailable("there is no dump"); };
  TempDir empty;
  const CopiedFiles none = CopyTree({Folder(from_.path()).get(), ::geteuid(), Folder(empty.path()).get(), Myself()},
                                    limits_, clock_);
  EXPECT_EQ(none.status.code(), StatusCode::kUnavailable);
  EXPECT_TRUE(FilesBelow(empty.path()).empty());
}

TEST_F(CollectedFilesTest, ItCanBeCancelled) {
  Put("file", "x");
  limits_.cancelled = std::make_shared<std::atomic<bool>>(true);
  EXPECT_EQ(Copy().status.code(), StatusCode::kDeadlineExceeded);
}

TEST_F(CollectedFilesTest, OnlyFilesAndFolders) {
  TempDir elsewhere;
  WriteText(elsewhere / "secret", "secret");
  Put("good", "good");
  std::filesystem::create_symlink(elsewhere / "secret", from_ / "link");
  std::filesystem::create_symlink(elsewhere.path(), from_ / "linked_folder");
  std::filesystem::create_hard_link(elsewhere / "secret", from_ / "second_name");
  ASSERT_EQ(::mkfifo((from_ / "fifo").c_str(), 0600), 0);
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = from_ / "socket";
  std::memcpy(address.sun_path, path.data(), path.size());
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  Put("a name", "blank");
  Put("line\nbreak", "break");
  Put(std::string(97, 'x'), "long");
  const CopiedFiles copied = Copy();
  EXPECT_TRUE(copied.status.ok());
  EXPECT_THAT(FilesBelow(to_.path()), ElementsAre("good"));
  EXPECT_EQ(copied.left_out, 8u);
  EXPECT_THAT(Why(copied),
              ElementsAre("a name: the name cannot be in a dump", "fifo: neither a file nor a folder",
                          "line?break: the name cannot be in a dump", "link: a symbolic link", testing::_,
                          "second_name: has another name besides", HasSubstr("socket: "),
                          HasSubstr("xxx: the name cannot be in a dump")));
  // O_NOFOLLOW of a folder.
  EXPECT_THAT(Why(copied)[4], HasSubstr("linked_folder: a symbolic link"));
}

TEST_F(CollectedFilesTest, NothingOfOtherUsers) {
  Put("own", "own");
  const CopiedFiles copied = CopyTree({Folder(from_.path()).get(), ::geteuid() + 1, Folder(to_.path()).get(), Myself()},
                                      limits_, clock_);
  EXPECT_EQ(copied.status.code(), StatusCode::kPermissionDenied);
  EXPECT_TRUE(FilesBelow(to_.path()).empty());
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  Put("folder/shadow", "secret");
  Put("shadow", "secret");
  ASSERT_EQ(::chown((from_ / "shadow").c_str(), kNobody, kNobody), 0);
  ASSERT_EQ(::chown((from_ / "folder").c_str(), kNobody, kNobody), 0);
  EXPECT_THAT(Why(Copy()), ElementsAre("shadow: belongs to uid 65534", "folder: belongs to uid 65534"));
  EXPECT_THAT(FilesBelow(to_.path()), ElementsAre("own"));
}

TEST_F(CollectedFilesTest, RefusesDescriptorsThatAreNotFolders) {
  Put("file", "x");
  const UniqueFd file(::open((from_ / "file").c_str(), O_RDONLY | O_CLOEXEC));
  const CopiedFiles copied =
      CopyTree({file.get(), ::geteuid(), Folder(to_.path()).get(), Myself()}, limits_, clock_);
  EXPECT_FALSE(copied.status.ok());
}

TEST_F(CollectedFilesTest, UnreadableFoldersAreLeftOut) {
  const bool root = ::geteuid() == 0;
  Put("closed/file", "x");
  Put("open", "x");
  if (root) {
    for (const char* path : {"", "closed", "closed/file", "open"}) {
      ASSERT_EQ(::chown((from_ / path).c_str(), kNobody, kNobody), 0);
    }
    ASSERT_EQ(::chown(to_.path().c_str(), kNobody, kNobody), 0);
    ASSERT_EQ(::seteuid(kNobody), 0);
  }
  ::chmod((from_ / "closed").c_str(), 0);
  const CopiedFiles copied = CopyTree(
      {Folder(from_.path()).get(), ::geteuid(), Folder(to_.path()).get(), {::geteuid(), ::getegid()}}, limits_, clock_);
  ::chmod((from_ / "closed").c_str(), 0700);
  if (root) {
    ASSERT_EQ(::seteuid(0), 0);
  }
  EXPECT_TRUE(copied.status.ok()) << copied.status.ToString();
  EXPECT_THAT(FilesBelow(to_.path()), ElementsAre("open"));
  EXPECT_THAT(Why(copied), ElementsAre(HasSubstr("closed: ")));
}

TEST_F(CollectedFilesTest, FilesThatChangeMeanwhile) {
  Put("growing", std::string(3 << 20, 'g'));
  Put("shrinking", std::string(3 << 20, 's'));
  HookedIo io;
  io.hook = [this] {
    std::ofstream(from_ / "growing", std::ios::app) << std::string(1 << 20, 'h');
    std::filesystem::resize_file(from_ / "shrinking", 1 << 20);
  };
  const CopiedFiles copied = Copy(io);
  EXPECT_TRUE(copied.status.ok());
  EXPECT_EQ(ReadText(to_ / "growing"), std::string(3 << 20, 'g'));
  EXPECT_EQ(ReadText(to_ / "shrinking").size(), 1u << 20);
  EXPECT_EQ(copied.left_out, 0u) << "it was that long when it was opened";
}

TEST_F(CollectedFilesTest, AFileThatShrinksWhileItIsReadIsNamed) {
  Put("shrinking", std::string(3 << 20, 's'));
  HookedIo io;
  io.hook = [this] { std::filesystem::resize_file(from_ / "shrinking", 1 << 20); };
  EXPECT_THAT(Why(Copy(io)), ElementsAre("shrinking: became shorter while it was copied"));
}

TEST_F(CollectedFilesTest, LimitsEndIt) {
  for (int i = 0; i < 20; ++i) Put("file" + std::to_string(10 + i), "12345");
  limits_.entries = 10;
  EXPECT_THAT(Copy().status.message(), HasSubstr("more than 10 files and folders"));
  EXPECT_EQ(FilesBelow(to_.path()).size(), 10u) << "those that it had met";
  std::filesystem::remove_all(to_.path());
  std::filesystem::create_directory(to_.path());
  limits_.entries = 100;
  limits_.files = 7;
  EXPECT_THAT(Copy().status.message(), HasSubstr("more than 7 files"));
  EXPECT_EQ(FilesBelow(to_.path()).size(), 7u);
  std::filesystem::remove_all(to_.path());
  std::filesystem::create_directory(to_.path());
  limits_.files = 100;
  limits_.bytes = 17;
  const CopiedFiles copied = Copy();
  EXPECT_EQ(copied.status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(copied.bytes, 15u);
}

TEST_F(CollectedFilesTest, AHugeSparseFileIsNotBegun) {
  Put("holes", "");
  std::filesystem::resize_file(from_ / "holes", uint64_t{1} << 42);
  EXPECT_EQ(Copy().status.code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(FilesBelow(to_.path()).empty());
}

TEST_F(CollectedFilesTest, TheVolumeIsNotFilled) {
  Put("file", "12345");
  limits_.free_bytes = uint64_t{1} << 60;
  EXPECT_THAT(Copy().status.message(), HasSubstr("no space is left"));
  EXPECT_TRUE(FilesBelow(to_.path()).empty());
  limits_.free_bytes = 0;
  FullDiskIo full;
  full.free_bytes = 3;
  EXPECT_EQ(Copy(full).status.code(), StatusCode::kResourceExhausted);
}

TEST_F(CollectedFilesTest, DepthIsBounded) {
  Put("1/2/3/4/deep", "x");
  limits_.depth = 3;
  const CopiedFiles copied = Copy();
  EXPECT_THAT(Why(copied), ElementsAre("1/2/3/4: nested too deep"));
  EXPECT_TRUE(copied.status.ok());
}

TEST_F(CollectedFilesTest, ExamplesAreBounded) {
  for (int i = 0; i < 100; ++i) Put("a name" + std::to_string(i), "");
  const CopiedFiles copied = Copy();
  EXPECT_EQ(copied.left_out, 100u);
  EXPECT_EQ(copied.examples.size(), CopiedFiles::kMaxExamples);
}

TEST_F(CollectedFilesTest, TheDeadlineEndsIt) {
  Put("first", std::string(3 << 20, 'x'));
  Put("second", "x");
  HookedIo io;
  io.hook = [this] { clock_.Advance(kNsPerSecond); };
  EXPECT_EQ(Copy(io).status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(FilesBelow(to_.path()), ElementsAre("first"));
}

// A disk that does not answer while it is closed.
class BlockingIo : public DumpIo {
 public:
  Result<UniqueFd> Create(int dir, const std::string& name, DumpOwner owner) override {
    std::unique_lock lock(mutex);
    ++waiting;
    changed.notify_all();
    if (name == "hangs") changed.wait(lock, [this] { return open; });
    return DumpIo::Create(dir, name, owner);
  }
  std::mutex mutex;
  std::condition_variable changed;
  bool open = false;
  int waiting = 0;
};

TEST_F(CollectedFilesTest, AUserWhoseCopyHangsKeepsNoOtherWaiting) {
  // The thread that hangs may outlive the test, and works with these.
  static BlockingIo io;
  static ManualClock clock;
  limits_.until_steady_ns = clock.SteadyNs() + kNsPerSecond;
  Executor executor("test", 1);
  Strand control(executor);
  FileCopier copier(control, clock, io);
  Put("hangs", "x");
  TempDir quick;
  WriteText(quick / "quick", "x");
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::pair<std::string, CopiedFiles>> done;
  const auto copy = [&](const std::string& name, const std::string& from, uid_t user) {
    control.Post([&, name, from, user] {
      copier.Copy({Folder(from), user, Folder(to_.path()), Myself(), limits_}, [&, name](const CopiedFiles& copied) {
        const std::lock_guard lock(mutex);
        done.emplace_back(name, copied);
        changed.notify_all();
      });
    });
  };
  const auto wait = [&](size_t count) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, std::chrono::seconds(60), [&] { return done.size() == count; });
  };
  copy("first", from_.path(), ::geteuid());
  {
    std::unique_lock lock(io.mutex);
    io.changed.wait(lock, [] { return io.waiting == 1; });
  }
  // As another user: what it may copy is none of this user's, but it is answered.
  copy("other", quick.path(), ::geteuid() + 1);
  ASSERT_TRUE(wait(1));
  EXPECT_EQ(done[0].first, "other");
  EXPECT_EQ(done[0].second.status.code(), StatusCode::kPermissionDenied);
  clock.Advance(10 * kNsPerSecond);
  control.Post([&] { copier.CheckDeadlines(clock.SteadyNs()); });
  ASSERT_TRUE(wait(2));
  EXPECT_EQ(done[1].second.status.code(), StatusCode::kDeadlineExceeded);
  copy("again", quick.path(), ::geteuid());
  ASSERT_TRUE(wait(3));
  EXPECT_EQ(done[2].second.status.code(), StatusCode::kUnavailable) << "its thread still hangs";
  {
    const std::lock_guard lock(io.mutex);
    io.open = true;
    io.changed.notify_all();
  }
  executor.Stop();
}

}  // namespace
}  // namespace profd
