"""`profctl stacks`: where the threads of a job stand, by real processes that hang in several ways."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import unittest

import attach_client
import profd_harness
from profd_harness import PROFCTL, RUNNER, Daemon, eventually, scaled
from processes import cpu_seconds
from python_package import environment
from sim_train import SimTrain

# Takes a step, then waits in the way the test chooses: in Python without the interpreter's lock, in native code with it, or not at
# all. A thread of its own waits in another function.
TRAINING = """
    import ctypes, sys, threading, profd

    def wait_for_rank():
        forever.wait()

    def hold_the_lock():
        ctypes.PyDLL(None).pause()

    def prefetch():
        forever.wait()

    forever = threading.Event()
    profd.attach()
    threading.Thread(target=prefetch, name="loader", daemon=True).start()
    with profd.step(7):
        print("there", flush=True)
        {"lock": hold_the_lock, "event": wait_for_rank}[sys.argv[1]]()
"""


class StacksOfAJob(unittest.TestCase):
    def setUp(self):
        self.d = Daemon(config={"daemon": {"socket_group": profd_harness.TEST_GROUP}}).start()
        self.addCleanup(self.d.dispose)

    def train(self, rank, how, job="j42"):
        process = self.enterContext(subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(TRAINING), how],
            env=environment(self.d, PROFD_JOB_ID=job, RANK=str(rank)), stdout=subprocess.PIPE, text=True))
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "there\n")
        eventually(lambda: any(p["step"] == 7 for p in self.d.processes(job) if p["pid"] == process.pid),
                   what="its step is known")
        return process

    def stacks(self, *arguments):
        return self.d.ctl("stacks", "--job", "j42", *arguments)["processes"]

    def test_ranks_that_wait(self):
        waiting = [self.train(rank, "event") for rank in (0, 1)]
        holding = self.train(2, "lock")
        by_rank = {p["rank"]: p for p in self.stacks()}
        self.assertEqual(sorted(by_rank), [0, 1, 2])
        for rank, process in enumerate(waiting):
            seen = by_rank[rank]
            self.assertEqual((seen["pid"], seen["python"], seen["step"], seen["problem"]), (process.pid, "answered", 7, ""))
            main = seen["threads"][0]
            self.assertEqual((main["thread"], main["trains"], main["state"]), (process.pid, True, "sleeping"))
            self.assertEqual(main["system_call"], "futex")
            places = [(frame["file"], frame["function"]) for frame in main["frames"]]
            self.assertEqual(places[-2:], [("<string>", "wait_for_rank"), ("<string>", "<module>")])
            self.assertEqual(places[0][1].rsplit(".", 1)[-1], "wait", "innermost first")
            self.assertEqual(main["frames"][-2]["line"], 5)
            functions = {t["thread"]: [f["function"] for f in t["frames"]] for t in seen["threads"] if t["frames"]}
            others = [names for thread, names in functions.items() if thread != process.pid]
            self.assertEqual(len(others), 1, "the package's own thread is left out")
            self.assertIn("prefetch", others[0])
            names = {t["name"] for t in seen["threads"]}
            self.assertLessEqual({"loader", "profd-stacks", "profd-attach"}, names)
            own = {int(name) for name in os.listdir(f"/proc/{process.pid}/task")}
            self.assertEqual({t["thread"] for t in seen["threads"]}, own)
        # Its interpreter cannot be asked; the kernel knows where it is all the same.
        seen = by_rank[2]
        self.assertEqual((seen["pid"], seen["python"]), (holding.pid, "silent"))
        self.assertEqual(seen["threads"][0]["state"], "sleeping")
        self.assertFalse(any(thread["frames"] for thread in seen["threads"]))

        text = self.d.run("stacks", "--job", "j42", json_output=False).stdout
        self.assertTrue(text.startswith(f"rank 2 (process {holding.pid}, "), text)
        self.assertIn("a thread holds the interpreter's lock", text)
        self.assertIn("\n2 ranks: 0,1 of job j42, step 7\n", text)
        self.assertIn("      wait_for_rank (<string>:5)\n", text)
        self.assertNotIn("prefetch", text)
        one = self.d.run("stacks", "--job", "j42", "--rank", "1", "--all", json_output=False).stdout
        self.assertIn("prefetch", one)
        self.assertTrue(one.startswith(f"rank 1 (process {waiting[1].pid}, "), one)
        many = subprocess.run([*RUNNER, PROFCTL, "--nodes", f"unix:{self.d.socket}", "stacks", "--job", "j42"],
                              capture_output=True, text=True, check=True, timeout=scaled(60)).stdout
        self.assertIn(f"on unix:{self.d.socket} (process {holding.pid}", many)
        for process in waiting + [holding]:
            self.assertIsNone(process.poll(), "asking does no harm")

    def test_a_stopped_process(self):
        process = self.train(0, "event")
        process.send_signal(signal.SIGSTOP)
        try:
            eventually(lambda: self.stacks()[0]["threads"][0]["state"] == "stopped")
            [seen] = self.stacks()
            self.assertEqual(seen["python"], "silent")
            self.assertIn("the process is stopped and cannot answer", self.d.run("stacks", json_output=False).stdout)
        finally:
            process.send_signal(signal.SIGCONT)
        eventually(lambda: self.stacks()[0]["python"] == "answered", what="it answers when it continues")

    def test_again_and_again(self):
        """While stacks are sampled, and beside it; each answer is a new one."""
        process = self.train(0, "event")
        session = self.d.ctl("start", "--job", "j42", "--options-json", '{"TORCH_CALL_STACK":"on"}', "--detach")["session_id"]
        for _ in range(20):
            [seen] = self.stacks()
            self.assertEqual(seen["python"], "answered")
        self.d.ctl("stop", session)
        threads = len(os.listdir(f"/proc/{process.pid}/task"))
        before = cpu_seconds(process.pid)
        self.assertEqual(self.stacks()[0]["python"], "answered")
        self.assertEqual(len(os.listdir(f"/proc/{process.pid}/task")), threads)
        self.assertLess(cpu_seconds(process.pid) - before, 1.0, "its thread waits, and does not spin")

    def test_without_python(self):
        job = SimTrain(self.d.attach_socket, os.path.join(self.d.base, "job"), steps=100_000)
        self.addCleanup(job.close)
        job.attached(self.d, 2)
        for seen in self.d.ctl("stacks", "--job", job.job_id)["processes"]:
            self.assertEqual(seen["python"], "none")
            self.assertGreater(len(seen["threads"]), 1)

    def test_missing_processes(self):
        self.train(0, "event")
        self.assertEqual(self.d.run("stacks", "--job", "other").returncode, 4)
        self.assertEqual(self.d.run("stacks", "--rank", "5").returncode, 4)
        foreign = self.d.run("stacks", "--job", "j42", user=4242, groups=(profd_harness.group_id(),))
        self.assertEqual(foreign.returncode, 4, "those of other users are not to be seen")
        self.assertNotIn("wait_for_rank", foreign.stdout + foreign.stderr)

    def test_wrong_answers_of_a_process(self):
        """Packets that no library sends: the daemon refuses them and continues."""
        client = attach_client.Client(self.d.attach_socket).attach(job_id="j42", rank=0, answers_stacks=True)
        self.addCleanup(client.close)
        for threads in ({}, [{"thread": -1}], [{"thread": 1, "frames": [["f", "g"]]}], [{"thread": 1}] * 129):
            client.send({"type": "stacks", "seq": 1, "has_python": True, "threads": threads})
        asked = self.d.spawn("stacks", "--job", "j42")
        call = client.receive_until("stacks")
        client.send({"type": "stacks", "seq": call["seq"] + 1, "has_python": True, "threads": []})
        client.send({"type": "stacks", "seq": call["seq"], "has_python": True,
                     "threads": [{"thread": 1, "frames": [["\u001b[2J", "f", 3]]}] * 3})
        out, _ = asked.communicate(timeout=60)
        [seen] = json.loads(out)["processes"]
        self.assertEqual(seen["python"], "answered")
        self.assertNotIn("\x1b", json.dumps(seen, ensure_ascii=False))
        self.assertTrue(self.d.alive())


if __name__ == "__main__":
    profd_harness.main()
