#include "client/top/draw.h"

#include <gtest/gtest.h>

#include "client/render.h"
#include "client/top/panels.h"
#include "client/top/select.h"
#include "client/top/test_support.h"

namespace profd::client::top {
namespace {

constexpr int64_t kNow = 59 * kNsPerSecond;

std::string Screen(const Model& model, const View& view, Size size) {
  return Draw(model, view, size, {"13:40:01", kNow}).Text();
}

std::string Line(const std::string& text, size_t number) {
  size_t begin = 0;
  for (size_t i = 0; i < number; ++i) begin = text.find('\n', begin) + 1;
  return text.substr(begin, text.find('\n', begin) - begin);
}

TEST(DrawTest, GoldenScreens) {
  Model model = MakeModel(8, 60);
  View view;
  ExpectGolden(Screen(model, view, {80, 24}), "top_80x24.txt");
  ExpectGolden(Screen(model, view, {120, 40}), "top_120x40.txt");
  ExpectGolden(Screen(model, view, {200, 60}), "top_200x60.txt");
  view.ascii = true;
  std::string ascii = Screen(model, view, {80, 24});
  ExpectGolden(ascii, "top_80x24_ascii.txt");
  for (char c : ascii) EXPECT_TRUE(c == '\n' || (c >= ' ' && c <= '~'));
  ExpectGolden(Screen(MakeModel(16, 60), {}, {80, 24}), "top_80x24_16.txt");
}

TEST(DrawTest, GoldenScreensOfActivity) {
  Model model = MakeModel(4, 60);
  model.SetActivity(MakeActivity(4));
  View view;
  ExpectGolden(Screen(model, view, {80, 24}), "top_activity_80x24.txt");
  view.process = -2;  // the last but one
  ExpectGolden(Screen(model, view, {120, 40}), "top_kernels_120x40.txt");
  view.process = 1;
  EXPECT_NE(Screen(model, view, {120, 40}).find("no session collects kernels from this process"), std::string::npos);
  EXPECT_NE(Screen(model, view, {160, 40}).find("FRAMEWORK"), std::string::npos);
}

// Of 43 kernels some fit; what is before their position is complete.
TEST(DrawTest, KernelsOfAProcessOnANarrowScreen) {
  Model model = MakeModel(4, 60);
  v1::GetActivityResponse activity = MakeActivity(4);
  const v1::HotKernel kernel = activity.processes(0).kernels(0);
  for (int i = 0; i < 40; ++i) *activity.mutable_processes(0)->add_kernels() = kernel;
  model.SetActivity(activity);
  View view;
  view.process = 0;
  const std::string text = Screen(model, view, {80, 24});
  const size_t title = text.find("KERNELS of rank 0, pid 4700 ");
  ASSERT_NE(title, std::string::npos) << text;
  const std::string line = text.substr(title, text.find('\n', title) - title);
  EXPECT_NE(line.find(" 1-"), std::string::npos) << line;
  EXPECT_NE(line.find(" of 43"), std::string::npos) << line;
}

TEST(DrawTest, AdviceAndCommandAreWholeOnANarrowScreen) {
  Model model = MakeModel(2, 60);
  v1::GetAdviceResponse advice;
  advice.add_advice()->set_check("slow_rank");
  advice.mutable_advice(0)->set_pid(4700);
  model.SetAdvice(advice);
  EXPECT_NE(Screen(model, {}, {80, 24}).find("    TIME ADVICE       COMMAND"), std::string::npos);
  model.SetActivity(MakeActivity(2));
  EXPECT_NE(Screen(model, {}, {80, 24}).find(" slow_rank"), std::string::npos);
}

TEST(DrawTest, WhatIsNotKnownYetIsNoSum) {
  EXPECT_NE(Screen(MakeModel(8, 0), {}, {80, 24}).find("util -  power -  jobs"), std::string::npos);
}

TEST(DrawTest, GoldenStyles) {
  Model model = MakeModel(2, 5);
  View view;
  view.ascii = true;
  Frame frame = Draw(model, view, {80, 24}, {"13:40:01", 4 * kNsPerSecond});
  // A letter for each style: plain, bold, faint, reverse, good, warning, bad, accent.
  std::string styles;
  for (int y = 0; y < 24; ++y) {
    for (int x = 0; x < 80; ++x) styles += " bfrgwxa"[static_cast<size_t>(frame.At(x, y).style)];
    styles += '\n';
  }
  ExpectGolden(styles, "top_styles.txt");
}

TEST(DrawTest, EverySizeIsDrawn) {
  Model model = MakeModel(8, 10);
  model.SetActivity(MakeActivity(8));
  for (int columns = 1; columns < 210; columns += 7) {
    for (int rows = 1; rows < 70; rows += 3) {
      for (Panel panel : {Panel::kAll, Panel::kGraphs, Panel::kProcesses, Panel::kSessions}) {
        View view;
        view.panel = panel;
        if (columns % 2 == 0) view.process = 0;
        Frame frame = Draw(model, view, {columns, rows}, {"13:40:01", 0});
        EXPECT_EQ(frame.size(), (Size{columns, rows}));
      }
    }
  }
}

TEST(DrawTest, SortsDevices) {
  Model model = MakeModel(8, 60);
  View view;
  ASSERT_TRUE(ParseSort("hbm", &view).ok());
  EXPECT_EQ(SelectDevices(model, view).front()->id, 7u);
  EXPECT_NE(Line(Screen(model, view, {80, 24}), 2).find("vHBM"), std::string::npos);
  ASSERT_TRUE(ParseSort("hbm:asc", &view).ok());
  EXPECT_EQ(SelectDevices(model, view).front()->id, 0u);
  ASSERT_TRUE(ParseSort("id:desc", &view).ok());
  EXPECT_EQ(SelectDevices(model, view).front()->id, 7u);
  // No device has a value: by id.
  ASSERT_TRUE(ParseSort("pcie", &view).ok());
  EXPECT_EQ(SelectDevices(model, view).front()->id, 0u);
  EXPECT_FALSE(ParseSort("weight", &view).ok());
  EXPECT_FALSE(ParseSort("hbm:up", &view).ok());
}

TEST(DrawTest, ShowsWhatItIsSortedByWhenTheColumnIsNotShown) {
  View view;
  ASSERT_TRUE(ParseSort("hbm-temp", &view).ok());
  EXPECT_EQ(Line(Screen(MakeModel(2, 3), view, {80, 24}), 2).substr(0, 9), "vhbm-temp");
}

TEST(DrawTest, FiltersByTextDevicesAndJob) {
  Model model = MakeModel(8, 60);
  View view;
  view.filter = "NPU3";
  ASSERT_EQ(SelectDevices(model, view).size(), 1u);
  ASSERT_EQ(SelectProcesses(model, view).size(), 1u);
  EXPECT_EQ(SelectProcesses(model, view)[0].process->pid(), 4703);
  EXPECT_EQ(SelectSessions(model, view).size(), 1u);
  view.filter = "nothing like it";
  EXPECT_TRUE(SelectDevices(model, view).empty());
  EXPECT_NE(Screen(model, view, {80, 24}).find("no device matches"), std::string::npos);
  view.filter = "";
  view.devices = {1, 2};
  EXPECT_EQ(SelectDevices(model, view).size(), 2u);
  EXPECT_EQ(SelectProcesses(model, view).size(), 2u);
  view.devices.clear();
  view.job = "j43";
  EXPECT_TRUE(SelectDevices(model, view).empty());
  EXPECT_TRUE(SelectProcesses(model, view).empty());
  EXPECT_TRUE(SelectSessions(model, view).empty());
  view.job = "j42";
  EXPECT_EQ(SelectDevices(model, view).size(), 8u);
}

TEST(DrawTest, ShowsTheStateOfTheConnection) {
  Model model = MakeModel(2, 3);
  View view;
  std::string text =
      Draw(model, view, {80, 24}, {"13:40:01", 2 * kNsPerSecond + 7 * kNsPerSecond}).Text();
  EXPECT_NE(Line(text, 0).find("silent for 7.0 s"), std::string::npos) << text;
  model.Lose("connection refused", 4 * kNsPerSecond);
  text = Draw(model, view, {80, 24}, {"13:40:01", 2 * kNsPerSecond}).Text();
  EXPECT_NE(Line(text, 0).find("NOT CONNECTED"), std::string::npos);
  EXPECT_NE(Line(text, 1).find("trying again in 2 s: connection refused"), std::string::npos);
}

TEST(DrawTest, AProblemFillsTheRowAndForeignTextIsHarmless) {
  Model model = MakeModel(2, 3);
  v1::Node node = MakeNode(2);
  node.set_hostname("evil\033[2Jhost");
  node.mutable_devices(1)->set_problem("stuck: \033]0;title\a call");
  model.SetNode(node);
  v1::ListJobsResponse jobs = MakeJobs(2);
  jobs.mutable_jobs(0)->set_job_id("j\n\033[31m");
  jobs.mutable_jobs(0)->mutable_processes(0)->set_command("\xff\xe2\x80\xae");
  model.SetJobs(jobs);
  Frame frame = Draw(model, {}, {120, 40}, {"13:40:01", 2 * kNsPerSecond});
  for (int y = 0; y < 40; ++y) {
    for (int x = 0; x < 120; ++x) {
      char32_t c = frame.At(x, y).character;
      EXPECT_TRUE(c == 0 || (c >= 0x20 && c != 0x7f && c != 0x202e)) << x << "," << y;
    }
  }
  EXPECT_NE(frame.Text().find("stuck: \\x1b]0;title\\x07 call"), std::string::npos);
}

TEST(DrawTest, HelpAndFilterLine) {
  Model model = MakeModel(2, 3);
  View view;
  view.help = true;
  EXPECT_NE(Screen(model, view, {80, 24}).find("sort by id, utilisation"), std::string::npos);
  view.help = false;
  view.typing = "npu";
  EXPECT_NE(Screen(model, view, {80, 24}).find("\n/npu_\n"), std::string::npos);
}

TEST(DrawTest, HelpIsCompleteAtEightyColumns) {
  Model model = MakeModel(2, 3);
  View view;
  view.help = true;
  std::string narrow = Screen(model, view, {80, 24});
  std::string wide = Screen(model, view, {160, 24});
  for (size_t line = 2; line < 23; ++line) EXPECT_EQ(Line(narrow, line), Line(wide, line));
}

TEST(DrawTest, HealthHasItsColumns) {
  Model model = MakeModel(3, 3);
  v1::Node node = MakeNode(3);
  v1::Health* hot = node.mutable_devices(1)->mutable_health();
  hot->set_verdict(v1::Health::VERDICT_DEGRADED);
  hot->add_flags(v1::Health::FLAG_THROTTLED);
  hot->add_flags(v1::Health::FLAG_FAULT);
  hot->add_faults()->set_code("0x80C98009");
  model.SetNode(node);
  EXPECT_EQ(Line(Screen(model, {}, {80, 24}), 4).substr(0, 13), "   1 degraded");
  EXPECT_NE(Line(Screen(model, {}, {200, 24}), 4).find("throttled 0x80C98009"), std::string::npos);
  Frame narrow = Draw(model, {}, {60, 24}, {"13:40:01", kNow});
  EXPECT_EQ(narrow.At(3, 4).style, Style::kWarning);
  EXPECT_EQ(narrow.At(3, 3).style, Style::kBold);
  View view;
  view.filter = "0x80c98009";
  ASSERT_EQ(SelectDevices(model, view).size(), 1u);
}

TEST(DrawTest, ManyDevicesScroll) {
  Model model = MakeModel(16, 3);
  View view;
  std::string text = Screen(model, view, {80, 24});
  EXPECT_NE(text.find("1-12 of 16 devices"), std::string::npos) << text;
  EXPECT_EQ(text.find("enlarge"), std::string::npos);
  view.scroll = 100;
  text = Screen(model, view, {80, 24});
  EXPECT_NE(text.find("5-16 of 16 devices"), std::string::npos) << text;
  EXPECT_EQ(Line(text, 14).substr(0, 7), "  15 ok");
}

TEST(DrawTest, ScrollsLongLists) {
  Model model = MakeModel(8, 3);
  View view;
  view.panel = Panel::kProcesses;
  view.scroll = 100;
  std::string text = Screen(model, view, {80, 18});
  EXPECT_NE(text.find("4707"), std::string::npos) << text;
  EXPECT_EQ(text.find("4700"), std::string::npos) << text;
  EXPECT_NE(text.find("of 8"), std::string::npos);
}

TEST(GraphRowsTest, NewestAtTheRightAndEveryValueShows) {
  History history;
  for (double value : {0.0, 0.5, 1.0, 2.0, kNothing}) history.Push(value);
  std::vector<std::string> rows = GraphRows(history, 6, 2, 1, true);
  EXPECT_EQ(rows[0], "   ## ");
  EXPECT_EQ(rows[1], " .### ");
  EXPECT_EQ(GraphRows(history, 6, 1, 1, false)[0], " ▁▄██ ");
}

}  // namespace
}  // namespace profd::client::top
