// `profctl archive`, as far as it comes without a database.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "client/test_support.h"

namespace profd::client {
namespace {

class ArchiveTest : public ProfctlTest {
 protected:
  TempDir dir_;
};

TEST_F(ArchiveTest, NothingWaits) {
  EXPECT_EQ(Run({"archive", "--once", "--work-dir", dir_ / "work"}), 0) << err();
  EXPECT_EQ(out(), "0 archived, 0 failed, 0 wait\n");
}

// None is due: after a failure, or because another process has them. "code 0, or 5 if a dump was not loaded" (docs/profctl.md).
TEST_F(ArchiveTest, WhatWaitsOnWasNotLoaded) {
  daemon_.archive.set_waiting(2);
  EXPECT_EQ(Run({"archive", "--once", "--work-dir", dir_ / "work"}), 5) << err();
  EXPECT_EQ(out(), "0 archived, 0 failed, 2 wait\n");
}

// In the journal of the service, as for a command.
TEST_F(ArchiveTest, WhatKeepsItFromProfdIsExplained) {
  daemon_.error = Unavailable("failed to connect to all addresses");
  daemon_.on_claim = [] { kill(getpid(), SIGTERM); };
  ExpectMessage({"--socket", dir_ / "none", "archive", "--work-dir", dir_ / "work"}, 0,
                "profctl: profd cannot be reached\nThere is no socket " + (dir_ / "none"));
}

// Not allowed is code 3 (docs/profctl.md), also where the folder is the first that is not.
TEST_F(ArchiveTest, AFolderOfOthersIsARefusal) {
  const std::string closed = dir_ / "closed";
  std::filesystem::create_directory(closed);
  std::filesystem::permissions(closed, std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  const bool root = geteuid() == 0;
  if (root) {
    ASSERT_EQ(seteuid(65534), 0);
  }
  const int code = Run({"archive", "--once", "--work-dir", closed + "/inside"});
  if (root) {
    ASSERT_EQ(seteuid(0), 0);
  }
  EXPECT_EQ(code, 3);
  EXPECT_NE(err().find(closed + "/inside: Permission denied"), std::string::npos) << err();
  EXPECT_NE(err().find("--work-dir"), std::string::npos) << err();
}

}  // namespace
}  // namespace profd::client
