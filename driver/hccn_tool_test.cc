#include "driver/hccn_tool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <thread>

#include "base/testing/eventually.h"
#include "driver/testing/script_tool.h"

namespace profd {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::ScriptFolder;

HccnToolOptions OptionsOf(std::string path) {
  return {.path = std::move(path), .require_safe = false};
}

Result<std::string> RunHccnTool(const HccnToolOptions& options, int physical_id, std::string_view what) {
  HccnTool tool(options);
  return tool.Run(HccnArguments(physical_id, what));
}

// No process that we started is left unreaped.
void ExpectNoChild() {
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

// Neither running nor a zombie that is ours.
bool IsGone(const std::string& pid) {
  std::ifstream stat("/proc/" + pid + "/stat");
  std::string line;
  if (!std::getline(stat, line)) return true;
  return line.find(") Z ") != std::string::npos || line.find(") X ") != std::string::npos;
}

TEST(HccnTool, RunsWithItsArgumentsAndNothingElse) {
  ScriptFolder folder;
  ::setenv("PROFD_TEST_SECRET", "here", 1);
  HccnToolOptions options =
      OptionsOf(folder.Write("tool", "echo \"$@\"; env; cat; ls /proc/self/fd"));
  options.environment = {"EXTRA=1"};
  // A descriptor that was not born close-on-exec.
  const int leaked = ::dup2(STDERR_FILENO, 77);
  Result<std::string> text = RunHccnTool(options, 3, "link");
  ::close(leaked);
  ::unsetenv("PROFD_TEST_SECRET");
  ASSERT_TRUE(text.ok()) << text.status().ToString();
  EXPECT_THAT(*text, ::testing::StartsWith("-i 3 -link -g\n"));
  EXPECT_THAT(*text,
              AllOf(HasSubstr("PATH=/usr"), HasSubstr("driver/lib64"), HasSubstr("EXTRA=1")));
  EXPECT_THAT(*text, AllOf(Not(HasSubstr("PROFD_TEST_SECRET")), Not(HasSubstr("\n77\n"))));
  ExpectNoChild();
}

TEST(HccnTool, HasAProcessGroupOfItsOwn) {
  ScriptFolder folder;
  Result<std::string> text = RunHccnTool(
      OptionsOf(folder.Write("tool", "read -r stat < /proc/self/stat; echo $stat")), 0, "link");
  ASSERT_TRUE(text.ok()) << text.status().ToString();
  int pid = 0, parent = 0, group = 0;
  ASSERT_EQ(std::sscanf(text->c_str(), "%d (%*[^)]) %*c %d %d", &pid, &parent, &group), 3) << *text;
  EXPECT_EQ(group, pid);
  EXPECT_EQ(parent, ::getpid());
}

TEST(HccnTool, ArgumentsOfA5) {
  EXPECT_THAT(HccnPortArguments(2, "optical", {1, 4}),
              ElementsAre("-g", "-optical", "-i", "2", "-u", "1", "-p", "4"));
  EXPECT_THAT(HccnPortTableArguments(2), ElementsAre("-g", "-dev_info", "-i", "2"));
}

TEST(HccnTool, AHangingToolIsKilledWithItsChildren) {
  ScriptFolder folder;
  HccnToolOptions options = OptionsOf(
      folder.Write("tool", "sleep 1000 & echo $! > " + folder.Path("child") + "; echo $$ > " +
                               folder.Path("pid") + "; trap '' TERM; wait"));
  options.timeout_ns = 300'000'000;
  Result<std::string> text = RunHccnTool(options, 0, "link");
  EXPECT_EQ(text.status().code(), StatusCode::kDeadlineExceeded) << text.status().ToString();
  ExpectNoChild();
  for (const char* name : {"pid", "child"}) {
    std::string pid = folder.Read(name);
    if (pid.empty()) continue;  // killed before it had written it
    pid.pop_back();
    EXPECT_TRUE(Eventually([&] { return IsGone(pid); })) << name;
  }
}

// The pipe stays open in the child, which must not keep us.
TEST(HccnTool, AChildThatStaysBehindIsKilledToo) {
  ScriptFolder folder;
  HccnToolOptions options = OptionsOf(folder.Write(
      "tool", "sleep 1000 & echo $! > " + folder.Path("child") + "; echo link status: UP"));
  options.timeout_ns = 60'000'000'000;
  Result<std::string> text = RunHccnTool(options, 0, "link");
  ASSERT_TRUE(text.ok()) << text.status().ToString();
  EXPECT_EQ(*text, "link status: UP\n");
  ExpectNoChild();
  std::string pid = folder.Read("child");
  pid.pop_back();
  EXPECT_TRUE(Eventually([&] { return IsGone(pid); }));
}

TEST(HccnTool, ItsOutputIsBounded) {
  ScriptFolder folder;
  HccnToolOptions options = OptionsOf(folder.Write("tool", "while :; do echo 0123456789; done"));
  options.max_output = 100'000;
  options.timeout_ns = 60'000'000'000;
  Result<std::string> text = RunHccnTool(options, 0, "stat");
  EXPECT_EQ(text.status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(text.status().message(), HasSubstr("more than 100000 bytes"));
  ExpectNoChild();
  // Much at once and a clean end: the same.
  options.path = folder.Write("big", "head -c 3000000 /dev/zero");
  EXPECT_EQ(RunHccnTool(options, 0, "stat").status().code(), StatusCode::kUnavailable);
  options.max_output = 4'000'000;
  Result<std::string> whole = RunHccnTool(options, 0, "stat");
  ASSERT_TRUE(whole.ok()) << whole.status().ToString();
  EXPECT_EQ(whole->size(), 3'000'000u);
}

TEST(HccnTool, ErrorsHaveItsOutput) {
  ScriptFolder folder;
  Status code =
      RunHccnTool(OptionsOf(folder.Write("fails", "echo; echo 'no such \033device' >&2; exit 7")),
                  9, "link")
          .status();
  EXPECT_EQ(code.code(), StatusCode::kUnavailable);
  EXPECT_EQ(code.message(), "hccn_tool ended with exit code 7: no such ?device");
  Status signal = RunHccnTool(OptionsOf(folder.Write("dies", "kill -SEGV $$")), 9, "link").status();
  EXPECT_EQ(signal.message(), "hccn_tool was ended by signal 11");
  EXPECT_EQ(RunHccnTool(OptionsOf(folder.Path("none")), 0, "link").status().code(),
            StatusCode::kNotFound);
  ExpectNoChild();
}

TEST(HccnTool, RefusesAProgramThatOthersMayChange) {
  ScriptFolder folder;
  HccnToolOptions options = OptionsOf(folder.Write("tool", "echo link status: UP"));
  options.require_safe = true;
  std::filesystem::permissions(options.path, std::filesystem::perms{0777});
  EXPECT_EQ(RunHccnTool(options, 0, "link").status().code(), StatusCode::kPermissionDenied);
}

TEST(HccnTool, CancelEndsTheRunAndThoseAfterIt) {
  ScriptFolder folder;
  HccnToolOptions options =
      OptionsOf(folder.Write("tool", "echo $$ > " + folder.Path("pid") + "; exec sleep 1000"));
  options.timeout_ns = 600'000'000'000;
  HccnTool tool(options);
  std::thread other([&] {
    EXPECT_TRUE(Eventually([&] { return !folder.Read("pid").empty(); }));
    tool.Cancel();
  });
  const std::vector<std::string> arguments = HccnArguments(0, "link");
  EXPECT_EQ(tool.Run(arguments).status().code(), StatusCode::kCancelled);
  other.join();
  EXPECT_EQ(tool.Run(arguments).status().code(), StatusCode::kCancelled);
  ExpectNoChild();
}

}  // namespace
}  // namespace profd
