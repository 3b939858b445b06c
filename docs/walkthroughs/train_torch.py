"""A training loop of PyTorch's shape that computes nothing, and profiles its eleventh step."""

import npu
import profd

OPTIONS = {"task_time": "l1", "aic_metrics": "PipeUtilization", "aicpu": "on", "ACL_PROF_ACL_API": "on", "msproftx": "on",
           "TORCH_CALL_STACK": "on", "output": "result_ascend_pt"}


def attention():
    npu.launch("MatMulV2", 900, (512, 1024), (1024, 3072), (512, 3072), operator="aten::linear")
    npu.launch("SoftmaxV2", 300, (16, 512, 512), (16, 512, 512), core="aivec", operator="aten::softmax")


def sample():
    npu.launch("GridSampler2D", 250000, (32, 256, 64, 64), (32, 64, 64, 2), (32, 256, 64, 64), core="aicpu", operator="aten::grid_sampler")
    npu.synchronize()


def model_train():
    for _ in range(4):
        attention()
    sample()
    npu.launch("ApplyAdamW", 500, (1024, 3072), (1024, 3072), core="aivec", operator="Optimizer.step#AdamW.step")
    npu.synchronize()


def main():
    profd.init(job_id="bert", rank=0, world_size=1, devices=[0], framework="pytorch", wait=10)
    npu.set_device(0)
    for step in range(1, 13):
        if step == 11:
            with profd.profile(OPTIONS, strict=True) as profile:
                npu.wait_until_collecting()
                with npu.FrameworkProfiler("result_ascend_pt"), profd.step(step):
                    model_train()
        else:
            with profd.step(step):
                model_train()
    print(profile.summary["output"])


if __name__ == "__main__":
    main()
