"""What a series of records remembers of the one before."""

MEGA = 1048576.0
V6 = (15, 16)  # chips


class Later:
    """difference: "all channels with rates": a record not later than the one before is left out; after
    eight in a row its series begins anew. `take` says what to do with one: "first", "rate" or "drop"."""

    def __init__(self):
        self.last = None
        self.dropped = 0

    def take(self, timestamp):
        if self.last is None:
            self.last = timestamp
            return "first"
        if timestamp > self.last:
            self.dropped = 0
            return "rate"
        self.dropped += 1
        if self.dropped < 8:
            return "drop"
        self.dropped = 0
        return "first"


class Unwrap:
    """difference: DDR, NPU memory: 32 bits of microseconds go on after their end."""

    def __init__(self):
        self.high = 0
        self.last = None

    def __call__(self, low):
        if self.last is not None and low < self.last - 0x80000000:
            self.high += 1 << 32
        elif self.last is not None and low > self.last + 0x80000000 and self.high:
            return self.high - (1 << 32) + low
        self.last = low
        return self.high + low
