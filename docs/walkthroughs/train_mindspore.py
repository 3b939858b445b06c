"""A training loop of MindSpore's shape that computes nothing, with the two lines of its profiler."""

import npu
import profd
from profd import Profiler


def forward():
    npu.launch("GetNext", 200, (32, 3, 224, 224), name="Default/GetNext-op0", core="aicpu")
    npu.launch("Cast", 100, (32, 3, 224, 224), (32, 3, 224, 224), name="Default/network/Cast-op1", core="aivec")
    for layer in range(4):
        npu.launch("Conv2D", 1500, (32, 64, 56, 56), (64, 64, 3, 3), (32, 64, 56, 56), name=f"Default/network/layer{layer}/Conv2D-op{layer}")
        npu.launch("ReLU", 200, (32, 64, 56, 56), (32, 64, 56, 56), name=f"Default/network/layer{layer}/ReLU-op{layer}", core="aivec")


def backward():
    for layer in reversed(range(4)):
        npu.launch("Conv2DBackpropFilter", 2500, (32, 64, 56, 56), (64, 64, 3, 3), name=f"Gradients/layer{layer}/Conv2DBackpropFilter-op{layer}")
        npu.all_reduce(f"AllReduce-op{layer}", 8, 400)


def update():
    npu.launch("ApplyMomentum", 800, (64, 64, 3, 3), (64, 64, 3, 3), name="Default/optimizer/ApplyMomentum-op9", core="aivec")


def main():
    profd.init(job_id="resnet50", rank=0, world_size=1, devices=[0], framework="mindspore", wait=10)
    npu.set_device(0)
    profiler = Profiler(output_path="data", hccl=True)
    npu.wait_until_collecting()
    for step in range(1, 11):
        with profd.step(step):
            forward()
            backward()
            update()
            npu.synchronize()
    print(profiler.analyse()["output"])


if __name__ == "__main__":
    main()
