#include "base/log.h"

#include <gtest/gtest.h>

namespace profd {
namespace {

TEST(Log, BytesFromOutsideCannotForgeALine) {
  EXPECT_EQ(log::Quote("plain-word_7"), "plain-word_7");
  EXPECT_EQ(log::Quote(""), "\"\"");
  EXPECT_EQ(log::Quote("a b"), "\"a b\"");
  EXPECT_EQ(log::Quote("x\nlevel=error"), "\"x\\x0alevel=error\"");
  EXPECT_EQ(log::Quote("\x1b[2J"), "\"\\x1b[2J\"");
  EXPECT_EQ(log::Quote("say \"hi\\\""), "\"say \\\"hi\\\\\\\"\"");
}

}  // namespace
}  // namespace profd
