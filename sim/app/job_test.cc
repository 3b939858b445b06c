#include "sim/app/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace profd::sim::app {
namespace {

using testing::HasSubstr;

TEST(Job, ReadsEverything) {
  const Result<Job> job = ParseJob(R"(
name = "tiny"
steps = 3
data_parallel = 2
tensor_parallel = 4
link_gb_s = 50
launch_us = 2.5
truth = false
data_ms = 7
batch_mb = 1.5
[[layer]]
name = "block"
count = 3
gradient_mb = 2
[[layer.operator]]
type = "Relu"
core = "aivec"
cores = 48
us = 15.5
backward_us = 20
shapes = [[8, 16], [32]]
[[optimizer]]
type = "ApplyAdam"
us = 100
[problems]
gc_gaps = 40
)");
  ASSERT_TRUE(job.ok()) << job.status().message();
  EXPECT_EQ(job->ranks(), 8u);
  EXPECT_EQ(job->bytes_per_ns, 50);
  EXPECT_EQ(job->launch_ns, 2'500);
  EXPECT_FALSE(job->truth);
  EXPECT_EQ(job->data_ns, 7'000'000);
  EXPECT_EQ(job->batch_bytes, 1'500'000u);
  ASSERT_EQ(job->layers.size(), 1u);
  const Layer& layer = job->layers[0];
  EXPECT_EQ(layer.count, 3u);
  EXPECT_EQ(layer.gradient_bytes, 2'000'000u);
  ASSERT_EQ(layer.operators.size(), 1u);
  const Operator& op = layer.operators[0];
  EXPECT_EQ(op.name, "Relu");
  EXPECT_EQ(op.function, "aclnnRelu");
  EXPECT_EQ(op.task_type, prof::kTaskAivec);
  EXPECT_EQ(op.block_dim, 48u);
  EXPECT_EQ(op.forward_ns, 15'500);
  EXPECT_EQ(op.backward_ns, 20'000);
  ASSERT_EQ(op.tensors.size(), 2u);
  EXPECT_EQ(op.tensors[0].type, 0u);
  EXPECT_EQ(op.tensors[0].shape[1], 16u);
  EXPECT_EQ(op.tensors[1].type, 1u);
  EXPECT_EQ(job->optimizer.at(0).forward_ns, 100'000);
  EXPECT_EQ(job->problems[kGcGaps], 40);
  EXPECT_EQ(job->problems[kSlowRank], 0);
}

TEST(Job, SaysWhatIsWrongAndWhere) {
  const auto error = [](const char* text) {
    const Result<Job> job = ParseJob(text);
    return job.ok() ? std::string("no error") : job.status().message();
  };
  EXPECT_THAT(error("\nstep = 3"), HasSubstr("line 2: unknown key 'step'"));
  EXPECT_THAT(error("mode = \"lazy\""), HasSubstr("must be eager or graph, not 'lazy'"));
  EXPECT_THAT(error("truth = 1"), HasSubstr("'truth' must be true or false"));
  EXPECT_THAT(error("steps = 0"), HasSubstr("'steps' must be an integer in 1.."));
  EXPECT_THAT(error("data_parallel = 64\ntensor_parallel = 2\n[[layer]]"),
              HasSubstr("more than 64 ranks"));
  EXPECT_THAT(error("pipeline_parallel = 2\n[[layer]]"), HasSubstr("fewer layers than stages"));
  EXPECT_THAT(error("[problems]\nslow = 1"), HasSubstr("line 2: unknown key 'slow' of problems"));
  EXPECT_THAT(error("[problems]\nfrequency_loss = 100"), HasSubstr("0..90"));
  EXPECT_THAT(error("[[layer]]\n[[layer.operator]]\nus = 1"), HasSubstr("needs a 'type'"));
  EXPECT_THAT(error("[[optimizer]]\ntype = \"A\"\ncore = \"gpu\""),
              HasSubstr("unknown core 'gpu'"));
  EXPECT_THAT(error("[[optimizer]]\ntype = \"A\\\"B\""), HasSubstr("without quotes"));
  EXPECT_THAT(error("[[optimizer]]\ntype = \"A\"\nshapes = [[0]]"), HasSubstr("above 0"));
  EXPECT_THAT(error("[[optimizer]]\ntype = \"A\"\nshapes = [3]"), HasSubstr("1 to 8 numbers"));
  EXPECT_THAT(error("layer = 3"), HasSubstr("must be tables"));
  EXPECT_THAT(error("name = "), HasSubstr("line 1"));
}

TEST(Job, TheShippedOnesCanBeRead) {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(PROFD_SIM_JOBS)) {
    const Result<Job> job = LoadJob(entry.path().string());
    EXPECT_TRUE(job.ok()) << job.status().message();
    ++count;
  }
  EXPECT_GE(count, 5u);
}

}  // namespace
}  // namespace profd::sim::app
