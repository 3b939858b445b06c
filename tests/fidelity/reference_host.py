"""Blocks of /proc files and the channels of the host, as rows of a Reference."""

import re
from decimal import Decimal


class HostParts:
    # Blocks of /proc ------------------------------------------------------------------------------

    @staticmethod
    def _blocks(slices):
        data = b"".join(slices)
        for match in re.finditer(rb"TimeStamp:(\d+)\nIndex:\d+\nDataLen:(\d+)\n", data):
            body = data[match.end():match.end() + int(match[2])]
            if len(body) == int(match[2]):
                yield int(match[1]), body.decode("latin-1").split("\n")

    def _block_time(self, place, ns):
        return place.clock.device(ns) if place.device >= 0 else place.clock.host(ns)

    def _cpu_blocks(self, place, slices):
        names = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal", "guest",
                 "guest_nice")
        for ns, lines in self._blocks(slices):
            for line in lines:
                words = line.split()
                if words and words[0].startswith("cpu") and len(words) >= 11:
                    cpu = int(words[0][3:] or -1)
                    self._add("sys_cpu", place, self._block_time(place, ns), cpu=cpu,
                              **dict(zip(names, map(int, words[1:11]))))

    _SystemCpuUsage = _host_sys_cpu = _cpu_blocks

    def _mem_blocks(self, place, slices):
        names = {"MemTotal": "total", "MemFree": "free", "Buffers": "buffers", "Cached": "cached",
                 "Shmem": "shmem", "CommitLimit": "commit_limit", "Committed_AS": "committed_as",
                 "HugePages_Total": "huge_pages_total", "HugePages_Free": "huge_pages_free"}
        for ns, lines in self._blocks(slices):
            values = {}
            for line in lines:
                name, _, rest = line.partition(":")
                if name in names:
                    values[names[name]] = int(rest.split()[0])
            if values:
                self._add("sys_mem", place, self._block_time(place, ns), **values)

    _Memory = _host_sys_mem = _mem_blocks

    def _pid_CpuUsage(self, place, slices):
        for ns, lines in self._blocks(slices):
            values = {"pid": int(lines[0].split()[0])}
            values["process_jiffies"] = sum(map(int, lines[0].rpartition(")")[2].split()[11:15]))
            values["process"] = lines[1].partition(":")[2].strip()
            values["total_jiffies"] = sum(map(int, lines[2].split()[1:]))
            self._add("proc_cpu", place, self._block_time(place, ns), **values)

    def _pid_Memory(self, place, slices):
        for base in place.files:
            match = re.match(r"(\d+)-Memory", base)
            if match:
                pid = int(match[1])
        for ns, lines in self._blocks(slices):
            size, resident, shared = map(int, lines[0].split()[:3])
            self._add("proc_mem", place, self._block_time(place, ns), pid=pid,
                      process=lines[1].partition(":")[2].strip(), size=size, resident=resident,
                      shared=shared)

    # The host -------------------------------------------------------------------------------------

    def _host_cpu(self, place, slices):
        samples = []
        for line in b"".join(slices).decode().split("\n"):
            words = line.split()
            if line.startswith("time "):
                samples.append([int(words[1]), None, {}])
            elif words and samples and samples[-1][1] is None:
                samples[-1][1] = Decimal(words[0]) * place.info["sysClockFreq"]
            elif words:
                rest = line.rpartition(")")[2].split()
                samples[-1][2][int(words[0])] = (int(rest[11]) + int(rest[12]), int(rest[36]))
        sixth = Decimal(10) ** -6
        for before, now in zip(samples, samples[1:]):
            span = now[1] - before[1]
            if not span:
                continue
            cpus = {}
            total = 0
            for tid, (used, cpu) in now[2].items():
                if tid not in before[2]:
                    continue
                # difference: "host CPU": what fell adds nothing
                grown = min(max(used - before[2][tid][0], 0), span)
                cpus[cpu] = cpus.get(cpu, 0) + grown
                total += grown
            for cpu, used in cpus.items():
                usage = (used * 100 / span).quantize(sixth)
                if usage <= 100:
                    self._add("host_cpu", place, place.clock.host(before[0]), cpu=cpu,
                              usage=float(usage))
            average = (total * 100 / (span * place.info["cpuNums"])).quantize(sixth)
            self._add("host_cpu", place, place.clock.host(before[0]), cpu=-1, usage=float(average))

    def _host_mem(self, place, slices):
        before = None
        for words in self._lines(slices):
            if len(words) < 3 or not all(w.isdigit() for w in words):
                continue
            if before is not None:
                usage = Decimal(words[2]) * 4 / place.info["memoryTotal"] * 100
                self._add("host_mem", place, place.clock.host(before),
                          usage=float(usage.quantize(Decimal(10) ** -6)))
            before = int(words[0])

    def _host_disk(self, place, slices):
        units = {"B/s": 1 / 1024.0, "K/s": 1.0, "M/s": 1024.0, "G/s": 1048576.0}
        items = []
        start = None
        for words in self._lines(slices):
            if words[0] == "start_time":
                start = int(words[1])
            elif len(words) >= 11 and words[1].isdigit():
                items.append((float(words[4]) * units[words[5]], float(words[6]) * units[words[7]],
                              float(words[10])))
        interval = 1e9 / place.sample["host_disk_freq"]
        for i, (read, write, usage) in enumerate(items):
            at = place.clock.raw_ns if start is None else start
            self._add("host_disk", place, place.clock.host(int(at + i * interval)), read=read,
                      write=write, usage=usage)

    def _host_network(self, place, slices):
        speeds = {card["netCardName"]: card["speed"] * 125000 for card in place.info["netCard"]}
        samples = []
        for line in b"".join(slices).decode().split("\n"):
            words = line.replace(":", " ").split()
            if line.startswith("time "):
                samples.append((int(words[1]), {}))
            elif words and samples and words[0] in speeds and len(words) >= 12:
                samples[-1][1][words[0]] = (int(words[1]), int(words[9]))
        for before, now in zip(samples, samples[1:]):
            total = cards = 0
            last = None
            for card, (rx, tx) in now[1].items():
                if card not in before[1]:
                    continue
                down = (rx - before[1][card][0], tx - before[1][card][1])
                last = card
                if min(down) >= 0:
                    total += sum(down)
                    cards += 1
            span = now[0] / 1e9 - before[0] / 1e9
            if not cards or span <= 0:
                continue
            speed = Decimal(total) / cards / Decimal(span)
            usage = (speed * 100 / speeds[last]).quantize(Decimal(10) ** -6)
            self._add("host_network", place, place.clock.host(before[0]), usage=float(usage),
                      speed=float(speed) * cards / 1024.0)
