#include "analysis/checks/places.h"

#include <gtest/gtest.h>

namespace profd::analysis {
namespace {

TEST(Places, FramesOfAStack) {
  const auto frames =
      FramesOf("/a/b c.py(12): f;\r\nd.py(3): g (h);x;(1): y;e.py(z): q;e.py(-4): q;last.py(9)");
  ASSERT_EQ(frames.size(), 3u);
  EXPECT_EQ(frames[0].file, "/a/b c.py");
  EXPECT_EQ(frames[0].line, 12);
  EXPECT_EQ(frames[0].function, "f");
  EXPECT_EQ(frames[1].function, "g (h)");
  EXPECT_EQ(frames[2].file, "last.py");
  EXPECT_EQ(frames[2].function, "");
  EXPECT_TRUE(FramesOf("").empty());
}

TEST(Places, OwnFrameIsNoneOfAPackage) {
  EXPECT_EQ(OwnFrame(FramesOf("/x/site-packages/t.py(1): a;/usr/lib/python3.9/q.py(2): "
                              "b;<frozen>(3): c;/job/t.py(4): d;u.py(5): e"))
                .file,
            "/job/t.py");
  EXPECT_EQ(OwnFrame(FramesOf("/x/site-packages/t.py(1): a;/x/dist-packages/u.py(2): b")).line, 1);
}

TEST(Places, EachPlaceOnce) {
  const Json places = PlacesOf({"a.py(1): f", "a.py(1): g", "a.py(2): f", "none"});
  ASSERT_EQ(places.size(), 2u);
  EXPECT_EQ(places[1]["line"], 2);
  std::vector<std::string> many;
  for (int i = 0; i < 200; ++i) many.push_back("a.py(" + std::to_string(i) + "): f");
  EXPECT_EQ(PlacesOf(many).size(), 100u);
}

}  // namespace
}  // namespace profd::analysis
