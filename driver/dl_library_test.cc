#include "driver/dl_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <map>

#include "base/testing/temp_dir.h"

namespace profd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A file system of names; everything belongs to root and is closed unless a test says otherwise.
class FakeTree {
 public:
  FakeTree() { entries_["/"] = {0, S_IFDIR | 0755, {}}; }
  FakeTree& Dir(const std::string& path, uint32_t mode = 0755, uint32_t uid = 0) {
    entries_[path] = {uid, S_IFDIR | mode, {}};
    return *this;
  }
  FakeTree& File(const std::string& path, uint32_t mode = 0644, uint32_t uid = 0) {
    entries_[path] = {uid, S_IFREG | mode, {}};
    return *this;
  }
  FakeTree& Link(const std::string& path, const std::string& target, uint32_t uid = 0) {
    entries_[path] = {uid, S_IFLNK | 0777, target};
    return *this;
  }
  Result<std::string> Check(const std::string& path) const {
    return CheckTrustedPath(path, [this](const std::string& name) -> Result<PathFacts> {
      auto found = entries_.find(name);
      if (found == entries_.end()) return NotFound(name + ": no such file");
      return found->second;
    });
  }

 private:
  std::map<std::string, PathFacts> entries_;
};

TEST(TrustedPathTest, AcceptsWhatOnlyRootCanWrite) {
  FakeTree tree;
  tree.Dir("/opt").Dir("/opt/lib").File("/opt/lib/a.so.1").Link("/opt/lib/a.so", "a.so.1");
  EXPECT_EQ(tree.Check("/opt/lib/a.so.1").value_or("?"), "/opt/lib/a.so.1");
  EXPECT_EQ(tree.Check("/opt//./lib/a.so").value_or("?"), "/opt/lib/a.so.1");
}

TEST(TrustedPathTest, RefusesForeignOwnersAnywhereOnTheWay) {
  FakeTree tree;
  tree.Dir("/opt", 0755, 1000).File("/opt/a.so").Dir("/lib").File("/lib/b.so", 0644, 7);
  EXPECT_EQ(tree.Check("/opt/a.so").status().code(), StatusCode::kPermissionDenied);
  EXPECT_THAT(tree.Check("/lib/b.so").status().message(), HasSubstr("/lib/b.so belongs to uid 7"));
}

TEST(TrustedPathTest, RefusesWritableFilesAndDirectories) {
  FakeTree tree;
  tree.Dir("/tmp", 01777).File("/tmp/a.so").Dir("/lib").File("/lib/b.so", 0664);
  tree.Dir("/grp", 0775).File("/grp/c.so");
  EXPECT_THAT(tree.Check("/tmp/a.so").status().message(), HasSubstr("/tmp is writable"));
  EXPECT_EQ(tree.Check("/lib/b.so").status().code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(tree.Check("/grp/c.so").status().code(), StatusCode::kPermissionDenied);
}

TEST(TrustedPathTest, FollowsEveryLinkAndChecksWhereItLeads) {
  FakeTree tree;
  tree.Dir("/lib").Dir("/tmp", 01777).File("/tmp/evil.so").Dir("/safe").File("/safe/a.so");
  tree.Link("/lib/evil.so", "/tmp/evil.so").Link("/lib/foreign.so", "/safe/a.so", 1000);
  tree.Link("/lib/via", "/tmp/hop").Link("/tmp/hop", "/safe").Link("/lib/up.so", "../safe/a.so");
  tree.Link("/lib/loop", "loop");
  EXPECT_EQ(tree.Check("/lib/evil.so").status().code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(tree.Check("/lib/foreign.so").status().code(), StatusCode::kPermissionDenied);
  // The end is safe, but any user can change the way there.
  EXPECT_EQ(tree.Check("/lib/via/a.so").status().code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(tree.Check("/lib/up.so").value_or("?"), "/safe/a.so");
  EXPECT_EQ(tree.Check("/lib/loop").status().code(), StatusCode::kFailedPrecondition);
}

TEST(TrustedPathTest, RefusesRelativeAndMissing) {
  FakeTree tree;
  EXPECT_EQ(tree.Check("a.so").status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(tree.Check("").status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(tree.Check("/nothing").status().code(), StatusCode::kNotFound);
}

TEST(DlLibraryTest, FindsByNameAndReportsMissingSymbols) {
  Result<DlLibrary> library = DlLibrary::Open({.configured_path = {},
                                               .soname = "libm.so.6",
                                               .usual_folders = {},
                                               .trust_unsafe_path = true});
  ASSERT_TRUE(library.ok()) << library.status().message();
  EXPECT_THAT(library->path(), HasSubstr("libm"));
  std::vector<std::string> missing;
  double (*cosine)(double) = nullptr;
  void (*nothing)() = nullptr;
  library->Resolve("cos", &cosine, &missing);
  library->Resolve("profd_no_such_symbol", &nothing, &missing);
  EXPECT_THAT(missing, ElementsAre("profd_no_such_symbol"));
  ASSERT_NE(cosine, nullptr);
  EXPECT_EQ(cosine(0.0), 1.0);
  EXPECT_EQ(nothing, nullptr);
}

TEST(DlLibraryTest, ErrorNamesEveryCandidate) {
  Result<DlLibrary> library = DlLibrary::Open({.configured_path = {},
                                               .soname = "libprofd_none.so",
                                               .usual_folders = {"/no/such/a", "/no/such/b"},
                                               .trust_unsafe_path = false});
  ASSERT_FALSE(library.ok());
  EXPECT_EQ(library.status().code(), StatusCode::kNotFound);
  EXPECT_EQ(library.status().message(),
            "no libprofd_none.so on this machine: neither where the loader looks, nor in /no/such/a, "
            "/no/such/b");
}

TEST(DlLibraryTest, ErrorNamesWhatIsWrongWithACandidateThatIsThere) {
  const TempDir folder;
  const std::string file = folder.Write("libprofd_none.so", "no library");
  Result<DlLibrary> library = DlLibrary::Open({.configured_path = {},
                                               .soname = "libprofd_none.so",
                                               .usual_folders = {"/no/such/a", folder.path()},
                                               .trust_unsafe_path = true});
  ASSERT_FALSE(library.ok());
  EXPECT_THAT(library.status().message(), HasSubstr("/no/such/a/libprofd_none.so: "));
  EXPECT_THAT(library.status().message(), HasSubstr(file + ": file too short"));
}

TEST(DlLibraryTest, AConfiguredPathIsTheOnlyOne) {
  Result<DlLibrary> library = DlLibrary::Open({.configured_path = "/no/such/lib.so",
                                               .soname = "libm.so.6",
                                               .usual_folders = {},
                                               .trust_unsafe_path = true});
  ASSERT_FALSE(library.ok());
  EXPECT_THAT(library.status().message(), HasSubstr("/no/such/lib.so"));
}

TEST(DlLibraryTest, RefusesAFileInAWorldWritableFolder) {
  Result<DlLibrary> system = DlLibrary::Open({.configured_path = {},
                                              .soname = "libm.so.6",
                                              .usual_folders = {},
                                              .trust_unsafe_path = true});
  ASSERT_TRUE(system.ok());
  const TempDir folder;
  const std::string copy = folder / "libcopy.so";
  std::filesystem::copy_file(system->path(), copy);
  std::filesystem::permissions(copy, std::filesystem::perms(0666));
  Result<DlLibrary> refused = DlLibrary::Open(
      {.configured_path = copy, .soname = "", .usual_folders = {}, .trust_unsafe_path = false});
  EXPECT_EQ(refused.status().code(), StatusCode::kPermissionDenied);
  Result<DlLibrary> trusted = DlLibrary::Open(
      {.configured_path = copy, .soname = "", .usual_folders = {}, .trust_unsafe_path = true});
  EXPECT_TRUE(trusted.ok()) << trusted.status().message();
}

}  // namespace
}  // namespace profd
