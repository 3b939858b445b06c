#include "daemon/session/session_output.h"

#include <gtest/gtest.h>

#include <optional>

#include "daemon/session/testing/session_manager_fixture.h"

namespace profd {
namespace {

class SessionOutputTest : public testing::SessionManagerTest {
 protected:
  void Open(const std::vector<int>& devices = {}) {
    SessionDumpOptions options;
    options.session.session_id = "s";
    options.owner = Myself();
    for (const int id : devices) options.devices.emplace_back().facts.id = id;
    output_.Open(std::move(options), 1, [this](const Status& status) { made_ = status; });
  }
  bool AwaitMade() { return time_.RunUntil([this] { return made_.has_value(); }); }
  void Close() {
    EndFacts end;
    end.state = DumpState::kDone;
    output_.Close(end, [](Manifest& manifest) { manifest.label = "last"; }, [this](const Status& status) { over_ = status; });
  }
  std::string Path() const {
    v1::SessionStatus status;
    output_.Fill(&status);
    EXPECT_EQ(status.dump_path(), output_.path());
    return status.dump_path();
  }

  SessionOutput output_{{control_, clock_, writer_, "s", false}};
  std::optional<Status> made_;
  std::optional<Status> over_;
};

TEST_F(SessionOutputTest, ADumpFromItsMakingToItsEnd) {
  EXPECT_FALSE(output_.opening());
  Open();
  EXPECT_TRUE(output_.opening());
  EXPECT_NE(output_.dump(), nullptr);
  EXPECT_EQ(Path(), "");
  ASSERT_TRUE(AwaitMade());
  EXPECT_TRUE(made_->ok()) << made_->ToString();
  EXPECT_FALSE(output_.opening());
  const std::string manifest = Path() + "/profd_manifest.json";
  EXPECT_EQ(ParseManifest(ReadText(manifest))->state, DumpState::kRunning);
  EXPECT_TRUE(output_.Tick().ok());
  EXPECT_FALSE(output_.closing());
  Close();
  EXPECT_TRUE(output_.closing());
  EXPECT_FALSE(output_.closed());
  ASSERT_TRUE(time_.RunUntil([this] { return over_.has_value(); }));
  EXPECT_TRUE(over_->ok()) << over_->ToString();
  EXPECT_TRUE(output_.closed());
  EXPECT_EQ(output_.unended(), nullptr);
  const Manifest ended = ParseManifest(ReadText(manifest)).value();
  EXPECT_EQ(ended.state, DumpState::kDone);
  EXPECT_EQ(ended.label, "last");
}

TEST_F(SessionOutputTest, WithoutADumpItIsClosedAtOnce) {
  EXPECT_TRUE(output_.Tick().ok());
  Close();
  ASSERT_TRUE(over_.has_value());
  EXPECT_TRUE(over_->ok());
  EXPECT_TRUE(output_.closed());
  EXPECT_EQ(Path(), "");
  EXPECT_EQ(output_.bytes(), 0u);
  EXPECT_EQ(output_.unended(), nullptr);
}

TEST_F(SessionOutputTest, ADumpThatCannotBeMadeIsNone) {
  Open({3, 3});  // one device twice
  ASSERT_TRUE(AwaitMade());
  EXPECT_EQ(made_->code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(output_.dump(), nullptr);
  EXPECT_FALSE(output_.opening());
  EXPECT_TRUE(output_.closed());
  EXPECT_EQ(Path(), "");
  EXPECT_EQ(Dumps(), 0u);
}

}  // namespace
}  // namespace profd
