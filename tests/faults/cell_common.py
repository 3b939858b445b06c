"""What the cells of the matrix beside the driver's functions share: their table, requests, daemons."""

from driver_passes import whole

MIB = 1 << 20
HOST = ["--collector", "host_cpu=20", "--collector", "host_mem=20"]
EVERYBODY = ["--host-sys-usage", "cpu,mem", "--host-sys-usage-freq", "20"]  # all processes of the machine
MUCH = ["--sys-hardware-mem-freq", "100", "--llc-profiling", "read", "--sys-io-sampling-freq", "100",
        "--sys-interconnection-freq", "50", "--dvpp-freq", "100", "--host-sys-usage", "cpu,mem"]
FUNCTIONS = {}


def cells(*prefixes):
    def note(function):
        for prefix in prefixes:
            FUNCTIONS[prefix] = function
        return function

    return note


def of(cell):
    """The function of a cell, by the longest prefix of its name."""
    found = [prefix for prefix in FUNCTIONS if cell.name.startswith(prefix)]
    return FUNCTIONS[max(found, key=len)] if found else None


def assert_whole(case, seen, devices):
    case.assertEqual(seen["verify"], "")
    for device in devices:
        case.assertEqual(whole(seen["dump"], device), "")


__all__ = [name for name in dir() if not name.startswith("_")]
