"""Cost against size: the curve of each dimension and the exponent of the power that fits it."""

import math
import os
import signal
import subprocess
import time

import rig

# Not the highest rates: the simulator of 64 devices must leave CPU time for what is measured.
DEVICE = ("--sys-hardware-mem-freq", "10", "--sys-io-sampling-freq", "20",
          "--sys-interconnection-freq", "10", "--dvpp-freq", "20", "--llc-profiling", "read")
CHANNELS = ("hbm", "pcie", "hccs", "roce", "nic", "qos", "npu_mem", "soc_profile")
PROCESS_HZ = 10
# % of a core; what is below it is what two idle runs differ by.
RESOLUTION = 0.05


def exponent(points):
    """Slope of log(cost) over log(size), least squares; None with fewer than two points above the resolution."""
    logs = [(math.log(size), math.log(cost)) for size, cost in points
            if size > 0 and cost > RESOLUTION]
    if len(logs) < 2:
        return None
    mean_x, mean_y = (sum(column) / len(logs) for column in zip(*logs))
    spread = sum((x - mean_x) ** 2 for x, _ in logs)
    return sum((x - mean_x) * (y - mean_y) for x, y in logs) / spread if spread else None


def cpu(daemon, seconds, warm_up=2.0):
    time.sleep(warm_up)
    before = rig.Snapshot(daemon)
    time.sleep(seconds)
    return rig.share(before, rig.Snapshot(daemon))["total"]["cpu_percent"]


def pick(points, args):
    """All with --full; without, the ends and the middle; two with --quick."""
    if args.full or len(points) < 4:
        return points
    return [points[0], points[-2]] if args.quick else [points[0], points[len(points) // 2], points[-1]]


def devices(build, seconds, args):
    """The driver's interface allows sixty-four at most."""
    for count in pick([1, 2, 4, 8, 16, 32, 64], args):
        with rig.Daemon(build, scenario=f'chip = "910B"\ndevices = {count}\n') as daemon:
            idle = cpu(daemon, seconds)
            daemon.start_session(*DEVICE)
            yield count, cpu(daemon, seconds) - idle


def channels(build, seconds, args):
    """The first N of eight channels on eight devices; their records differ, so the curve has steps."""
    with rig.Daemon(build) as daemon:
        idle = cpu(daemon, seconds)
        for count in pick([1, 2, 4, 6, 8], args):
            options = [word for name in CHANNELS[:count] for word in ("--collector", f"{name}=50")]
            session = daemon.start_session(*options)
            yield count, cpu(daemon, seconds) - idle
            daemon.stop_session(session)


def rates(build, seconds, args):
    with rig.Daemon(build) as daemon:
        idle = cpu(daemon, seconds)
        for hz in pick([5, 10, 20, 50, 100], args):
            options = [word for name in ("hbm", "roce", "nic", "npu_mem", "qos")
                       for word in ("--collector", f"{name}={hz}")]
            session = daemon.start_session(*options)
            yield hz, cpu(daemon, seconds) - idle
            daemon.stop_session(session)


class Sleepers:
    """Processes that do nothing, all in one group."""

    def __init__(self, count):
        self.count = count

    def __enter__(self):
        self.shell = subprocess.Popen(
            ["sh", "-c", f'i=0; while [ $i -lt {self.count} ]; do sleep 3600 & i=$((i+1)); done; echo up; wait'],
            stdout=subprocess.PIPE, start_new_session=True)
        self.shell.stdout.readline()
        return self

    def __exit__(self, *_):
        os.killpg(self.shell.pid, signal.SIGKILL)
        self.shell.wait()
        self.shell.stdout.close()


def on_machine():
    return sum(name.isdigit() for name in os.listdir("/proc"))


def processes(build, seconds, args):
    """host_cpu and host_mem of all processes at 10 Hz; the size is all there are on the machine."""
    for count in pick([10, 100, 500, 2000, 5000], args):
        with Sleepers(count), rig.Daemon(build, simulate=False) as daemon:
            idle = cpu(daemon, seconds)
            session = daemon.start_session("--host-sys-usage", "cpu,mem", "--host-sys-usage-freq",
                                           str(PROCESS_HZ), "--no-dump")
            before = on_machine()
            cost = cpu(daemon, seconds, warm_up=4.0) - idle
            # Others may come and go meanwhile; ours are all there.
            yield min(before, on_machine()), cost
            daemon.stop_session(session)


def sessions(build, seconds, args):
    """Sessions that all write the same channels of eight devices."""
    with rig.Daemon(build) as daemon:
        idle, running = cpu(daemon, seconds), []
        for count in pick([1, 4, 16, 32, 64], args):
            while len(running) < count:
                running.append(daemon.start_session("--collector", "hbm=50", "--collector", "hccs=50"))
            yield count, cpu(daemon, seconds) - idle


def subscribers(build, seconds, args):
    """Streams of one device's HCCS at 50 Hz; 0: what the session alone costs, the floor of the curve."""
    streams = []
    with rig.Daemon(build) as daemon:
        daemon.start_session("--collector", "hccs=50", "--no-dump")
        try:
            floor = cpu(daemon, seconds)
            yield 0, 0.0
            for count in pick([5, 10, 25, 50, 100], args):
                while len(streams) < count:
                    streams.append(subprocess.Popen(
                        [build.profctl, "--socket", daemon.socket, "stream", "--collectors", "hccs",
                         "--devices", "0", "--devices-only", "--interval", "1s", "--format", "csv"],
                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
                yield count, cpu(daemon, seconds, warm_up=3.0) - floor
        finally:
            for stream in streams:
                stream.terminate()
            for stream in streams:
                stream.wait()


DIMENSIONS = {"devices": devices, "channels": channels, "rates": rates, "processes": processes,
              "sessions": sessions, "subscribers": subscribers}


def scale(build, args):
    seconds = 3 if args.quick else max(5, min(10, args.seconds / 2))
    result = {}
    for name, curve in DIMENSIONS.items():
        points = list(curve(build, seconds, args))
        result[name] = {"points": points, "exponent": exponent(points)}
    return {"seconds": seconds, "dimensions": result}


def print_scale(part):
    print("  own CPU above the idle daemon, % of a core, simulator excluded")
    for name, row in part["dimensions"].items():
        fitted = "-" if row["exponent"] is None else f"{row['exponent']:.2f}"
        print(f"  {name:<12} exponent {fitted:>5}   "
              + "  ".join(f"{size}: {cost:.3f}" for size, cost in row["points"]))


def goals_scale(part, goal):
    for name, row in part["dimensions"].items():
        if row["exponent"] is not None:
            # 1 is linear; what is above it up to 1.1 is what two runs differ by.
            goal(f"exponent of the cost against {name}", row["exponent"], 1.1, "")
