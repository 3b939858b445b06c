#!/usr/bin/env python3
"""The host's share: the job's own processes, the whole system, in the vendor's files."""

import os
import subprocess
import sys

import prof_reader
from processes import children
from profd_harness import DaemonCase, eventually, main

# A process with a child, both busy; the name has what breaks careless parsers of /proc/pid/stat.
WORKER = ("import os, time\n"
          "open('/proc/self/comm', 'w').write('a) R (b 1')\n"
          "os.fork()\n"
          "end = time.monotonic() + 600\n"
          "while time.monotonic() < end: sum(range(2000)); time.sleep(0.001)\n")


class HostSide(DaemonCase):
    devices = 1

    def worker(self, **environment):
        process = subprocess.Popen([sys.executable, "-c", WORKER], start_new_session=True,
                                   env=dict(os.environ, **environment))
        self.addCleanup(self.end, process)
        eventually(lambda: children(process.pid))
        return process

    def end(self, process):
        if process.poll() is None:
            os.killpg(process.pid, 9)
            process.wait()

    def record(self, *options):
        final = self.daemon.record(*options, seconds=1.5)
        dump = prof_reader.read_valid(final["dump_path"])
        return final, dump

    def check_job(self, dump, pid):
        cpu, mem = dump[(-1, "host_cpu.data")], dump[(-1, "host_mem.data")]
        threads = {}
        for record in cpu.records:
            uptime, *lines = record.values["lines"]
            self.assertEqual(len(uptime.split()), 2, uptime)
            for line in lines:
                tid, rest = line.split(" ", 1)
                fields = rest.rsplit(")", 1)[1].split()
                self.assertGreaterEqual(len(fields), 37)
                threads.setdefault(int(tid), []).append(int(fields[11]) + int(fields[12]))
        self.assertIn(pid, threads)
        self.assertGreaterEqual(len(threads), 2)  # the child, too
        for times in threads.values():
            self.assertEqual(times, sorted(times))
        self.assertGreater(mem.records[-1].values["statm"][1], 100)
        for channel in (cpu, mem):
            timestamps = [r.timestamp for r in channel.records]
            self.assertEqual(timestamps, sorted(set(timestamps)))
        return threads

    def test_job_by_pid(self):
        process = self.worker()
        _, dump = self.record("--host-sys", "cpu,mem", "--pid", process.pid)
        threads = self.check_job(dump, process.pid)
        self.assertNotIn(os.getpid(), threads)
        self.assertNotIn("1-CpuUsage.data", dump.blocks)
        self.assertEqual(dump.host["sample"]["host_sys_pid"], process.pid)
        self.assertEqual(dump.host["info"]["pid"], str(process.pid))

    def test_job_by_environment(self):
        process = self.worker(PROFD_JOB_ID="env:job-1")
        other = self.worker(PROFD_JOB_ID="env:job-2")
        _, dump = self.record("--host-sys", "cpu,mem", "--job", "env:job-1",
                              "--devices", "0")
        threads = self.check_job(dump, process.pid)
        self.assertNotIn(other.pid, threads)

    def test_complete_system(self):
        process = self.worker()
        final, dump = self.record("--host-sys-usage", "cpu,mem", "--host-sys-usage-freq", "10")
        self.assertNotIn((-1, "host_cpu.data"), dump.channels)
        for name in ("host_sys_cpu.data", "host_sys_mem.data"):
            blocks = dump.blocks[name]
            self.assertGreater(len(blocks), 2)
            walls = [dump.host["clock"].wall("host_ns", ns) for ns, _, _ in blocks]
            self.assertEqual(walls, sorted(set(walls)))
            self.assertGreaterEqual(walls[0], final["started_ns"] - 1_000_000)
            self.assertLessEqual(walls[-1], final["ended_ns"] + 1_000_000)
        for _, _, body in dump.blocks["host_sys_cpu.data"]:
            lines = body.splitlines()
            self.assertTrue(lines[0].startswith("cpu  "))
            self.assertTrue(all(l.startswith("cpu") and len(l.split()) >= 11 for l in lines))
            self.assertEqual(len(lines) - 1, os.sysconf("SC_NPROCESSORS_ONLN"))
        names = {line.split(":")[0] for line in
                 dump.blocks["host_sys_mem.data"][0][2].splitlines()}
        self.assertLessEqual({"MemTotal", "MemFree", "Buffers", "Cached", "Shmem",
                              "CommitLimit", "Committed_AS", "HugePages_Total",
                              "HugePages_Free"}, names)
        for pid in (process.pid, self.daemon.pid, os.getpid()):
            cpu, mem = dump.blocks[f"{pid}-CpuUsage.data"], dump.blocks[f"{pid}-Memory.data"]
            lines = cpu[0][2].splitlines()
            self.assertEqual(lines[0].split(" ", 1)[0], str(pid))
            self.assertTrue(lines[1].startswith("ProcessName:"))
            self.assertTrue(lines[2].startswith("cpu "))
            lines = mem[0][2].splitlines()
            self.assertEqual(len(lines[0].split()), 7)
            self.assertTrue(lines[1].startswith("ProcessName:"))
        # The analyser splits at blanks: a name with blanks must not shift the columns.
        fields = dump.blocks[f"{process.pid}-CpuUsage.data"][0][2].splitlines()[0].split()
        self.assertEqual(fields[1], "(a)_R_(b_1)")
        self.assertIn(fields[2], tuple("RSDTtZ"))
        self.assertEqual(len(fields), 52)

    def test_both(self):
        process = self.worker()
        _, dump = self.record("--host-sys", "cpu,mem", "--host-sys-usage", "cpu,mem",
                              "--pid", process.pid)
        threads = self.check_job(dump, process.pid)
        self.assertNotIn(self.daemon.pid, threads)
        self.assertIn("1-CpuUsage.data", dump.blocks)

    def test_process_that_ends_midway(self):
        process = self.worker()
        session = self.daemon.ctl("start", "--host-sys", "cpu,mem", "--pid", process.pid)
        self.daemon.until_records(session["session_id"], 20)
        self.end(process)
        usage = self.daemon.ctl("start", "--host-sys-usage", "cpu")
        self.daemon.until_records(usage["session_id"], 20)
        for one in (session, usage):
            final = self.daemon.ctl("stop", one["session_id"])["sessions"][0]
            self.assertEqual(final["state"], "done")
            self.assertEqual(prof_reader.read(final["dump_path"]).problems, [])

    def test_own_samples_beside_the_vendors(self):
        """Collectors without a vendor file: host/profd/samples.tsv, host CLOCK_MONOTONIC_RAW timestamps."""
        final = self.daemon.record("--collector", "host_mem=10", "--collector", "host_disk=10",
                                   "--collector", "npu_state=5", seconds=1.5)
        dump = prof_reader.read_valid(final["dump_path"])
        rows = prof_reader.samples_tsv(dump.path)
        metrics = {row["metric"].split("{")[0] for row in rows}
        self.assertIn("atlas_host_disk_bytes_total", metrics)
        self.assertIn("atlas_npu_power_watts", metrics)
        offset = dump.host["clock"].offset_ns
        for row in rows:
            self.assertTrue(final["started_ns"] - 2_000_000_000 <=
                            int(row["time_ns"]) + offset <= final["ended_ns"] + 1_000_000)
            float(row["value"])
        listed = {f["path"] for f in dump.manifest["files"]}
        self.assertIn("host/profd/samples.tsv", listed)


if __name__ == "__main__":
    main()
