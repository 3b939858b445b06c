"""The step trace of ts_track.data (dump-format 4): iterations, their CSV and their slices."""

import struct
from collections import Counter

from expected_csv import micros, round3

V6 = (15, 16)
NO_MODEL = 4294967295


class Model:
    def __init__(self):
        self.state = None  # "started", "ended"
        self.number = 0
        self.begin(0)

    def begin(self, count):
        self.start, self.fp, self.bp, self.reduces = count, None, None, {}


class Steps:
    """`iterations`: dicts with the times in ns, in the order of their ends."""

    def __init__(self, place):
        self._place = place
        self._models = {}
        self.iterations = []
        records = []
        layout = "<BBHLQQQHHI" if place.chip in V6 else "<BBHLQQQHHHH"
        data = b"".join(place.files.get("ts_track.data", []))
        for f in struct.iter_unpack(layout, data[:len(data) // 40 * 40]):
            tag, stream = (f[7], f[8]) if place.chip in V6 else (f[9], f[7])
            if f[1] == 10:
                records.append((f[4], f[5], f[6], stream, tag))
        steps = {}
        for count, index, model, stream, tag in sorted(records, key=lambda r: r[0]):
            if tag == 60000:
                steps[index] = count
            elif tag == 60001 and index in steps:
                self._end(model, index, steps.pop(index), count, None, None, {})
            elif tag < 60000:
                self._one(self._models.setdefault(model, Model()), model, count, stream, tag)
        self._augment()

    def _one(self, m, model, count, stream, tag):
        if tag == 0 and m.state != "started":
            m.state = "started"
            m.begin(count)
        elif tag == 4 and m.state or tag == 1 and m.state == "started":
            m.number += 1
            self._end(model, m.number, m.start, count, m.fp, m.bp, m.reduces)
            m.state = "ended" if tag == 4 else None
            m.begin(count)
        elif tag == 2:
            m.fp = count
        elif tag == 3:
            m.bp = count
        elif 10000 <= tag < 20000:
            pairs = m.reduces.setdefault(stream, [])
            if tag % 2 == 0:
                pairs.append([count, None])
            elif pairs:
                pairs[-1][1] = count

    def _end(self, model, number, start, end, fp, bp, reduces):
        wall = self._place.clock.device_counter
        pairs = [[wall(a), wall(b)] for own in reduces.values() for a, b in own if b is not None]
        self.iterations.append({
            "model": model, "number": number, "start": wall(start), "end": wall(end),
            "fp": fp and wall(fp), "bp": bp and wall(bp), "reduces": pairs, "aug": None})

    def _augment(self):
        for i, one in enumerate(self.iterations):
            ends = [e["end"] for e in self.iterations[:i] if one["fp"] and e["end"] <= one["fp"]]
            if ends:
                one["aug"] = one["fp"] - max(ends)

    def csv(self):
        native = self._place.chip in (5, 15, 16)

        def timestamp(t):
            # difference: "CSV step_trace, chips 5, 15, 16": N/A
            return "N/A" if t is None else micros(t) + "\t"

        def length(ns):
            if ns is None:
                return "N/A"
            return micros(ns) if native else round3(ns / 1000)

        most = max((len(one["reduces"]) for one in self.iterations), default=0)
        header = ["Iteration ID", "FP Start(us)", "BP End(us)", "Iteration End(us)", "Iteration Time(us)",
                  "FP to BP Time(us)", "Iteration Refresh(us)", "Data Aug Bound(us)", "Model ID"]
        rows = [["Device_id"] + header + ["Reduce Start(us)", "Reduce Duration(us)"] * most]
        # Training steps stand behind the iterations.
        ordered = ([o for o in self.iterations if o["model"] != NO_MODEL] +
                   [o for o in self.iterations if o["model"] == NO_MODEL])
        for one in ordered:
            both = one["fp"] is not None and one["bp"] is not None
            row = [str(self._place.device), str(one["number"]), timestamp(one["fp"]), timestamp(one["bp"]),
                   timestamp(one["end"]), length(one["end"] - one["start"]),
                   length(one["bp"] - one["fp"] if both else None),
                   length(one["end"] - one["bp"] if one["bp"] is not None else None),
                   length(one["aug"]), str(one["model"])]
            for a, b in one["reduces"]:
                # difference: "CSV step_trace, chips 5, 15, 16": end - start
                row += [timestamp(a), length(b - a)]
            rows.append(row + ["N/A"] * (2 * (most - len(one["reduces"]))))
        return rows

    def slices(self):
        """Counter of (name, thread's model, ts, dur in us)."""
        result = Counter()
        for one in self.iterations:
            k = one["number"]

            def add(name, t, ns, model=one["model"]):
                result[(name, model, micros(t), ns / 1000)] += 1

            add(f"Iteration {k}", one["start"], one["end"] - one["start"])
            if one["fp"] is not None and one["bp"] is not None:
                add(f"FP_BP Time {k}", one["fp"], one["bp"] - one["fp"])
                add(f"Iteration Refresh {k}", one["bp"], one["end"] - one["bp"])
            for i, (a, b) in enumerate(one["reduces"]):
                add(f"Reduce_{k}_{i}", a, b - a)
        return result
