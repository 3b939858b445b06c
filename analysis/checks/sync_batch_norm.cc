#include "analysis/checks/check.h"

#include "base/text.h"

namespace profd::analysis {
namespace {

// One all-reduce for a layer; gradients go back through it.
constexpr std::string_view kForward = R"(import torch
import torch.distributed as dist
from torch.distributed.nn.functional import all_reduce

def forward(self, x):
    if not self.training and self.running_mean is not None:
        return torch.nn.functional.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, False, 0.0, self.eps)
    channels = x.size(1)
    others = [0] + list(range(2, x.dim()))
    shape = [1, channels] + [1] * (x.dim() - 2)
    values = x.float()
    count = values.new_full((1,), x.numel() / channels)
    sums = torch.cat([count, values.sum(others), (values * values).sum(others)])
    group = self.process_group or dist.group.WORLD
    if dist.is_initialized() and dist.get_world_size(group) > 1:
        sums = all_reduce(sums, group=group)
    count, total, squares = sums.split([1, channels, channels])
    mean = total / count
    variance = (squares / count - mean * mean).clamp(min=0)
    if self.training and self.running_mean is not None:
        with torch.no_grad():
            self.num_batches_tracked.add_(1)
            rate = self.momentum if self.momentum is not None else 1.0 / float(self.num_batches_tracked)
            self.running_mean.lerp_(mean, rate)
            self.running_var.lerp_(variance * count / (count - 1), rate)
    result = (values - mean.view(shape)) * torch.rsqrt(variance + self.eps).view(shape)
    if self.affine:
        result = result * self.weight.view(shape) + self.bias.view(shape)
    return result.to(x.dtype)

torch.nn.SyncBatchNorm.forward = forward)";

}  // namespace

std::optional<Finding> CheckSyncBatchNorm(const CheckInput& input) {
  const Calls calls = CallsOf(input, [](std::string_view name) { return LowerCase(name) == "syncbatchnorm"; });
  if (static_cast<double>(calls.count) < input.limits.At("sync_batch_norm", "count")) return std::nullopt;
  const double ms = Ms(calls.ns);
  Finding finding;
  finding.priority = Priority::kHigh;
  finding.cost_ms = CostOf(input, ms);
  finding.step = input.StepNumber();
  finding.title = Text("SyncBatchNorm in its slow form", "SyncBatchNorm 性能较差");
  finding.evidence = Translate({"SyncBatchNorm was called {:time}, {:.3f} ms in all", "SyncBatchNorm 被调用 {} 次，共 {:.3f} ms"}, Counted{calls.count}, ms);
  finding.advice = {Text("Leave out torch.nn.SyncBatchNorm.convert_sync_batchnorm(model) where the batch of one rank is large enough.", "单个 rank 的 batch 足够大时，去掉 torch.nn.SyncBatchNorm.convert_sync_batchnorm(model)。"),
                    Text("Else replace its forward method: the code below exchanges counts, sums and squares in one all-reduce and leaves the rest to autograd.", "否则替换其 forward 方法：下面的代码用一次 all-reduce 交换数量、和与平方和，其余交给 autograd。")};
  finding.code = {kForward};
  finding.at_ns = calls.first_ns;
  return finding;
}

}  // namespace profd::analysis
