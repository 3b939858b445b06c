"""How true the times are: sampling against its ideal grid, idle and under load; the devices' clocks; channels beside
each other. All of it from the dump alone, as any reader of one has it."""

import glob
import math
import os
import sys
import time

import peers
import rig

sys.path.insert(0, os.path.join(rig.ROOT, "tests", "harness"))

# Collector, rate: all at once in one session. 100 Hz is a driver's channel, whose grid is the driver's own.
RATES = (("host_mem", 1), ("host_pressure", 10), ("host_cpu", 50), ("hbm", 100))
CHANNELS = ("hbm", "hccs", "pcie", "roce", "nic", "npu_mem", "qos", "soc_profile")
HOST_STAMPED = ("npu_module_mem.data",)
SKEW_HZ = 50
SIM_SEED = 1
COUNTER_HZ = 50_000_000


# The simulator's clocks (sim/device_clock.h, sim/noise.h): what a device's clock truly shows.

def _mix(x):
    x = (x + 0x9E3779B97F4A7C15) & (2**64 - 1)
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & (2**64 - 1)
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & (2**64 - 1)
    return x ^ (x >> 31)


def _hash(seed, a, b, c):
    return _mix(_mix(_mix(_mix(seed) ^ a) ^ b) ^ c)


class DeviceClock:
    def __init__(self, device):
        self.offset = _hash(SIM_SEED, 0x300, device, 0) % 3_600_000_000_000 + 1_000_000_000
        self.drift_ppb = _hash(SIM_SEED, 0x300, device, 1) % 10_001 - 5_000
        self.counter = _hash(SIM_SEED, 0x300, device, 2) % 1_000_000_000_000

    def at(self, host_ns):
        return host_ns + self.offset + int(host_ns // 1000 * self.drift_ppb / 1_000_000)


def slope(points):
    """(slope, its standard error) of y over x by least squares. The error is from ten blocks of the run, each as
    one point: neighbours are late together, so single ones would promise too much."""
    def fit(some):
        mean_x, mean_y = (sum(column) / len(some) for column in zip(*some))
        spread = sum((x - mean_x) ** 2 for x, _ in some) or 1.0
        value = sum((x - mean_x) * (y - mean_y) for x, y in some) / spread
        left = sum((y - mean_y - value * (x - mean_x)) ** 2 for x, y in some)
        return value, math.sqrt(left / max(1, len(some) - 2) / spread)

    size = max(1, len(points) // 10)
    blocks = [points[at:at + size] for at in range(0, len(points) - size + 1, size)]
    means = [tuple(sum(column) / len(block) for column in zip(*block)) for block in blocks]
    return fit(points)[0], fit(means)[1] if len(means) > 2 else 0.0


def points_of_grid(timestamps, first, period):
    """The point each sample belongs to: up to three quarters of a period are lateness. One that is later than that
    comes to the next point, where the next sample is already; if its own point is empty, it belongs there."""
    points = [math.floor((timestamp - first + period / 4) / period) for timestamp in timestamps]
    taken = list(points)
    for at in range(len(points) - 1):
        if points[at] == points[at + 1] and (at == 0 or points[at - 1] < points[at] - 1):
            taken[at] -= 1
    return points, taken


def against_grid(timestamps, hz, scale=1.0):
    """Every sample against its point of start + k periods, start being where the most punctual one puts it.
    `scale`: how many of the timestamps' ns are one ns of the grid's clock."""
    period = 1e9 / hz * scale
    # Where most samples put the grid: the first may be a late one.
    first = timestamps[0] + rig.percentile([(timestamp - timestamps[0] + period / 2) % period - period / 2 for timestamp in timestamps], 0.5)
    points, taken = points_of_grid(timestamps, first, period)
    errors = [timestamp - first - point * period for timestamp, point in zip(timestamps, taken)]
    least = min(errors)
    late = [(error - least) / 1e3 for error in errors]
    # Neighbours apart by a period, as one who looks at differences sees it.
    apart = [abs(b - a - period) / 1e3 for a, b in zip(timestamps, timestamps[1:])]
    ppm, error = slope([((timestamp - timestamps[0]) / 1e9, us) for timestamp, us in zip(timestamps, late)])
    seconds = (timestamps[-1] - timestamps[0]) / 1e9
    empty = points[-1] - points[0] + 1 - len(set(points))
    return {"hz": hz, "samples": len(timestamps), "missing": taken[-1] - taken[0] + 1 - len(set(taken)),
            # Points of the grid without a sample, or samples at a point that has one already: who is late by
            # more than three quarters of a period leaves one and comes to the other.
            "grid_errors": max(empty, len(points) - len(set(points))),
            "drift_ppm": ppm, "drift_ppm_error": error,
            "drift_us": ppm * seconds,
            # What two standard errors do not explain.
            "drift_periods": max(0.0, abs(ppm) - 2 * error) * seconds * hz / 1e6,
            "period_p99_us": rig.percentile(apart, 0.99),
            "p50_us": rig.percentile(late, 0.5), "p99_us": rig.percentile(late, 0.99), "max_us": max(late)}


def host_timestamps(dump):
    """Collector: timestamps in CLOCK_MONOTONIC_RAW, from what the collector writes itself."""
    found = {}
    for collector, name in (("host_cpu", "host_sys_cpu"), ("host_mem", "host_sys_mem")):
        timestamps = []
        for path in sorted(glob.glob(os.path.join(dump, "host", "data", name + ".data.slice_*[0-9]")),
                           key=lambda path: int(path.rpartition("_")[2])):
            with open(path, "rb") as file:
                timestamps += [int(line[10:]) for line in file if line.startswith(b"TimeStamp:")]
        found[collector] = timestamps
    timestamps = {}
    with open(os.path.join(dump, "host", "profd", "samples.tsv"), encoding="utf-8") as file:
        next(file)
        for line in file:
            timestamp, metric, _ = line.split("\t", 2)
            if metric.startswith("atlas_host_pressure"):
                timestamps[int(timestamp)] = None
    found["host_pressure"] = list(timestamps)
    return found


def hbm_timestamps(dump, device):
    """ns on the device's grid: 24 bytes {u64 us since start, ...} of dump-format 2, several records a point."""
    import struct
    import prof_records
    layout = prof_records.BINARY["hbm.data"][0]
    timestamps = {}
    for path in sorted(glob.glob(f"{dump}/device_{device}/data/hbm.data.{device}.slice_*[0-9]"),
                       key=lambda path: int(path.rpartition("_")[2])):
        with open(path, "rb") as file:
            data = file.read()
        size = struct.calcsize(layout)
        for fields in struct.iter_unpack(layout, data[:len(data) // size * size]):
            timestamps[fields[0] * 1000] = None
    return list(timestamps)


def clock_rate():
    """The grid is CLOCK_MONOTONIC's, timestamps are CLOCK_MONOTONIC_RAW's: (one, other) now."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC), time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)


def stressed():
    """CPU hogs, as many as cores."""
    tool = peers.program("stress-ng")
    if tool:
        return peers.Peer("stress-ng", [tool, "--quiet", "--cpu", str(os.cpu_count())])
    return peers.Peer("busy shells", ["sh", "-c", "for i in $(seq %d); do (while :; do :; done) & done; wait"
                                      % os.cpu_count()])


def recorded(daemon, seconds, options):
    session = daemon.start_session(*options)
    before = clock_rate()
    time.sleep(seconds)
    after = clock_rate()
    daemon.stop_session(session)
    return daemon.dump_of(session), (after[1] - before[1]) / (after[0] - before[0])


def grids(daemon, seconds):
    options = [word for name, hz in RATES for word in ("--collector", f"{name}={hz}")]
    dump, scale = recorded(daemon, seconds, options)
    found = host_timestamps(dump)
    found["hbm"] = hbm_timestamps(dump, 0)
    rows = {}
    for collector, hz in RATES:
        timestamps = found[collector]
        if len(timestamps) > 3:
            rows[f"{collector}, {hz} Hz"] = against_grid(
                timestamps, hz, 1.0 if collector == "hbm" else scale)
    return rows, clocks(dump)


def clocks(dump):
    """What the pairs of clocks in the dump say against what the simulated clocks truly showed."""
    errors, counters, declared, single = [], [], [], []
    starts = {}
    for pair in rig.manifest_of(dump)["clocks"]:
        if pair["device"] < 0 or not pair["device_ns"]:
            continue
        truth = DeviceClock(pair["device"])
        error = pair["device_ns"] - truth.at(pair["host_ns"])
        errors.append(abs(error))
        declared.append(pair["uncertainty_ns"])
        counters.append(abs((pair["device_count"] - truth.counter) * (10**9 // COUNTER_HZ)
                            - pair["device_ns"]))
        start = starts.setdefault(pair["device"], pair)
        # The vendor's analyser has one pair alone: what the crystals drift apart is its error at the end.
        single.append(abs((pair["device_ns"] - start["device_ns"]) - (pair["host_ns"] - start["host_ns"])))
    outside = sum(1 for error, width in zip(errors, declared) if error > width + 20)
    return {"pairs": len(errors), "max_error_ns": max(errors), "p50_error_ns": rig.percentile(errors, 0.5),
            "max_uncertainty_ns": max(declared), "outside_uncertainty": outside,
            "counter_max_error_ns": max(counters), "one_pair_at_the_end_us": max(single) / 1e3}


def skew(daemon, seconds):
    """Channels of the devices beside each other on the wall clock, as the vendor's formulas have it."""
    import prof_reader
    options = [word for name in CHANNELS for word in ("--collector", f"{name}={SKEW_HZ}")]
    dump = prof_reader.read(recorded(daemon, seconds, options + ["--devices", "0-3"])[0])
    firsts, drifts, period = {}, {}, 10**9 / SKEW_HZ
    for (device, name), channel in dump.channels.items():
        walls = sorted({record.wall for record in channel.records if record.wall})
        if device < 0 or len(walls) < SKEW_HZ or "lpm" in name:
            continue
        gaps = sorted(b - a for a, b in zip(walls, walls[1:]))
        if not 0.9 * period < gaps[len(gaps) // 2] < 1.1 * period:
            continue  # several timestamps a point, or a rate of its own
        firsts.setdefault(device, []).append(walls[0])
        count = round((walls[-1] - walls[0]) / period)
        drifts[device, name] = walls[-1] - walls[0] - count * period
    per_device, by_host = {}, [0]
    for (device, name), drift in drifts.items():
        # One channel is timestamped with the host's counter: what it shows is the device's crystal.
        (by_host if name in HOST_STAMPED else per_device.setdefault(device, [])).append(drift)
    everything = [first for row in firsts.values() for first in row]
    return {"channels": len(drifts), "seconds": seconds,
            "start_in_device_ms": max(max(row) - min(row) for row in firsts.values()) / 1e6,
            "start_on_node_ms": (max(everything) - min(everything)) / 1e6,
            "apart_in_device_us": max(max(row) - min(row) for row in per_device.values()) / 1e3,
            "crystal_us": max(map(abs, by_host)) / 1e3}


def precision(build, args):
    seconds = args.precision_seconds or (10 if args.quick else 600 if args.full else 60)
    result = {"seconds": seconds}
    with rig.Daemon(build) as daemon:
        result["idle"], result["clocks"] = grids(daemon, seconds)
        with stressed() as load:
            result["load"] = load.name
            result["stressed"], result["clocks_stressed"] = grids(daemon, seconds)
        result["skew"] = skew(daemon, 6 if args.quick else 20)
    return result


def print_precision(part):
    print(f"  {part['seconds']} s each; lateness on the grid in us")
    print(f"  {'':<30}{'samples':>9}{'p50':>8}{'p99':>8}{'max':>9}{'period p99':>12}{'drift us':>10}"
          f"{'ppm':>8}{'+-':>6}{'off grid':>10}")
    for state in ("idle", "stressed"):
        for name, row in part[state].items():
            print(f"  {state + ', ' + name:<30}{row['samples']:>9}{row['p50_us']:>8.0f}{row['p99_us']:>8.0f}"
                  f"{row['max_us']:>9.0f}{row['period_p99_us']:>12.0f}{row['drift_us']:>10.1f}"
                  f"{row['drift_ppm']:>8.2f}{row['drift_ppm_error']:>6.2f}{row['grid_errors']:>10}")
    for name in ("clocks", "clocks_stressed", "skew"):
        print(f"  {name}: " + ", ".join(f"{key} {value:g}" for key, value in part[name].items()))


def goals_precision(part, goal):
    idle, load = part["idle"].values(), part["stressed"].values()
    goal("drift: samples and points off the grid, idle", sum(row["grid_errors"] for row in idle), 0.0, "")
    goal(f"the same beside {part['load']}", sum(row["grid_errors"] for row in load), 0.0, "")
    goal("change of lateness over the run / period, idle", max(row["drift_periods"] for row in idle), 0.01, "")
    goal("p99 lateness, idle / period", max(row["p99_us"] * row["hz"] / 1e6 for row in idle), 0.1, "")
    goal("clock pairs further off than they say",
         part["clocks"]["outside_uncertainty"] + part["clocks_stressed"]["outside_uncertainty"], 0.0, "")
    goal("channels of a device drift apart", part["skew"]["apart_in_device_us"], 1.0, "us")
