#!/usr/bin/env python3
"""profctl on many nodes: 32 daemons on loopback ports, some of them slow, refusing or dead."""

import glob
import json
import os
import shutil
import signal
import subprocess
import unittest

from processes import blocks
from profd_harness import ALICE, IS_ROOT, PROFCTL, RUNNER, SCALE, Daemon, eventually, main, profctl, scaled, temp_folder
from text_files import read_json, read_text, write_text
from tls_files import tls_section
from toml_files import scenario_text

# Under a sanitizer or an emulator a daemon is many times its size.
NODES = 32 if SCALE <= 1 else 16
REFUSING = range(3, 6)
DEAD = range(8, 11)
SLOW = range(12, 14)
GOOD = [i for i in range(NODES) if i not in (*REFUSING, *DEAD, *SLOW)]
# Short enough for a test, long enough for a loaded machine.
NODE_TIMEOUT = f"{int(10 * SCALE)}s"
WANTED = ("--all", "--collector", "host_cpu=10")


def call(*arguments, env=None, seconds=240):
    return profctl(*arguments, expect=None, env=env, seconds=seconds)


class FleetCase(unittest.TestCase):
    """The daemons, and who sends the requests."""

    @classmethod
    def setUpClass(cls):
        cls.folder = temp_folder(cls)
        cls.tls = os.path.join(cls.folder, "tls")
        cls.user = "alice" if IS_ROOT else "me"
        made = call("tls", "init", cls.tls, "--hosts", "localhost,127.0.0.1", "--users", cls.user)
        assert made.returncode == 0, made.stderr
        cls.scenario = scenario_text(devices=1)
        cls.daemons = [Daemon(scenario_text=cls.scenario, config=cls.config(i))
                       for i in range(NODES)]
        for daemon in cls.daemons:
            cls.addClassCleanup(cls.end, daemon)
        for daemon in cls.daemons:
            daemon.start(ready=False)
        for daemon in cls.daemons:
            daemon.wait_ready()
        cls.addresses = [daemon.node["tls_address"] for daemon in cls.daemons]
        for i in REFUSING:
            # Another session has the only place there is.
            cls.daemons[i].ctl("start", "--detach", *WANTED)
        for i in DEAD:
            cls.daemons[i].kill()
        for i in SLOW:
            os.kill(cls.daemons[i].pid, signal.SIGSTOP)

    @classmethod
    def end(cls, daemon):
        if daemon.alive():
            os.kill(daemon.pid, signal.SIGCONT)
        daemon.dispose()

    @classmethod
    def config(cls, i):
        uid = ALICE if IS_ROOT else os.geteuid()
        return {"metrics": {"enabled": False},
                "limits": {"max_sessions": 1 if i in REFUSING else 64},
                "tls": tls_section(cls.tls, users=[f"{cls.user}={uid}"])}

    def fleet(self, nodes, *arguments, expect=0, json_output=True, timeout=NODE_TIMEOUT, env=None,
              judge=True):
        """profctl on these nodes (indices, or the options that name them): (answer, stderr)."""
        if not isinstance(nodes, tuple):
            nodes = ("--nodes", ",".join(self.addresses[i] for i in nodes))
        done = call(*nodes, "--node-timeout", timeout, "--tls-dir",
                    os.path.join(self.tls, "clients", self.user),
                    *(["--json"] if json_output else []), *arguments, env=env)
        answer = json.loads(done.stdout) if json_output and done.stdout else done.stdout
        wrong = [(node["node"], node["error"], node["note"]) for node in answer["nodes"]
                 if not node["ok"]] if json_output and answer and judge else answer
        self.assertEqual(done.returncode, expect, (arguments, wrong, done.stderr[-3000:]))
        return answer, done.stderr

    def left(self, job, nodes=GOOD):
        """Sessions of the job that have not ended, by what the daemons' own sockets say."""
        return [(i, session["session_id"]) for i in nodes
                for session in self.daemons[i].ctl("list", "--active", "--job", job)["sessions"]]

    def assert_named(self, stderr, word, nodes):
        line = [line for line in stderr.splitlines() if line.startswith(f"profctl: {word} (")]
        self.assertEqual(len(line), 1, stderr)
        named = set(line[0].split("): ")[1].split(", "))
        self.assertEqual(named, {self.addresses[i] for i in nodes})


class Fleet(FleetCase):

    def test_status_names_who_does_not_answer(self):
        answer, stderr = self.fleet(range(NODES), "status", expect=5)
        self.assertEqual([node["node"] for node in answer["nodes"]], self.addresses)
        bad = {*DEAD, *SLOW}
        for i, node in enumerate(answer["nodes"]):
            self.assertEqual(node["ok"], i not in bad, node)
        # A deadline longer than gRPC's own for a handshake never comes.
        slow = {"deadline_exceeded"} if SCALE <= 1 else {"deadline_exceeded", "unavailable"}
        for i in SLOW:
            self.assertIn(answer["nodes"][i]["error"]["code"], slow)
        for i in DEAD:
            self.assertEqual(answer["nodes"][i]["error"]["code"], "unavailable")
        self.assert_named(stderr, "unreachable", bad)
        self.fleet(DEAD, "status", expect=6)
        self.fleet(GOOD, "status")

    def test_a_complete_job(self):
        answer, stderr = self.fleet(range(NODES), "start", "--job", "whole", *WANTED, expect=5)
        refused = {i: node["error"] for i, node in enumerate(answer["nodes"]) if node["error"]}
        self.assertEqual(set(refused), {*REFUSING, *DEAD, *SLOW}, refused)
        self.assert_named(stderr, "refused", REFUSING)
        self.assert_named(stderr, "unreachable", {*DEAD, *SLOW})
        common = answer["common_start_ns"]
        self.assertGreater(common, 0)
        ids = {}
        for i in GOOD:
            node = answer["nodes"][i]
            self.assertTrue(node["ok"], node)
            session = node["sessions"][0]
            ids[i] = session["session_id"]
            offset, bound = node["clock_offset_ns"], node["clock_offset_error_ns"]
            # All of them have our clock: the truth is zero.
            self.assertLessEqual(abs(offset), bound, node)
            if session["state"] == "scheduled":
                self.assertEqual(session["start_at_ns"], common + offset)
        self.check_started(ids, common, answer)
        self.check_stop(ids)
        self.check_fetch(ids, common)

    def check_started(self, ids, common, answer):
        for i, session_id in ids.items():
            session = self.daemons[i].until_state(session_id, "running", seconds=120)
            node = answer["nodes"][i]
            self.assertEqual(session["uid"], ALICE if IS_ROOT else os.geteuid())
            if not node["late"]:
                self.assertEqual(session["started_ns"], common + node["clock_offset_ns"], node)
            self.assertEqual(session["metadata"]["common_start_ns"], str(common))
            self.assertEqual(session["metadata"]["clock_offset_ns"], str(node["clock_offset_ns"]))
            self.assertEqual(session["metadata"]["fleet_node"], self.addresses[i])
            self.daemons[i].until_records(session_id, 1, seconds=120)

    def check_stop(self, ids):
        answer, stderr = self.fleet([*GOOD, *REFUSING, *DEAD], "stop", "--job", "whole", expect=5,
                                    timeout=f"{int(60 * SCALE)}s")
        states = {node["node"]: node["state"] for node in answer["nodes"]}
        for i in ids:
            self.assertEqual(states[self.addresses[i]], "done")
        for i in REFUSING:
            self.assertEqual(states[self.addresses[i]], "no session")
        self.assert_named(stderr, "unreachable", DEAD)
        self.assertEqual(self.left("whole"), [])
        self.fleet(GOOD, "stop", "--job", "whole", expect=4)

    def check_fetch(self, ids, common):
        out = os.path.join(self.folder, "out")
        answer, _ = self.fleet([*GOOD, *REFUSING], "fetch", "--job", "whole", "--out", out)
        index = read_json(out, "fleet.json")["dumps"]
        self.assertEqual({entry["node"] for entry in index}, {self.addresses[i] for i in ids})
        self.assertEqual({entry["session_id"] for entry in index}, set(ids.values()))
        for entry in index:
            self.assertEqual(entry["common_start_ns"], common)
            path = os.path.join(out, entry["dump"])
            metadata = read_json(path, "profd_manifest.json")["session"]["metadata"]
            self.assertEqual(metadata["clock_offset_ns"], str(entry["clock_offset_ns"]))
        self.assertEqual(glob.glob(os.path.join(out, "**", ".part-*"), recursive=True), [])
        # What is there is left alone, and one that was lost comes again.
        marked = os.path.join(out, index[0]["dump"], "mine")
        write_text(marked, "x")
        shutil.rmtree(os.path.join(out, index[1]["dump"]))
        answer, _ = self.fleet([*GOOD, *REFUSING], "fetch", "--job", "whole", "--out", out)
        there = {dump["path"]: dump["was_there"] for node in answer["nodes"]
                 for dump in node["dumps"]}
        self.assertEqual([path for path, was in there.items() if not was], [index[1]["dump"]])
        self.assertTrue(os.path.exists(marked))

    def test_a_start_is_one_thing_by_its_id(self):
        """stop, fetch and show by the id that start gave; others of the job are not meant."""
        nodes = GOOD[:2]
        other = self.daemons[nodes[0]].ctl("start", "--detach", "--job", "twice", *WANTED)["session_id"]
        answer, _ = self.fleet(nodes, "start", "--job", "twice", *WANTED)
        fleet_id = answer["fleet_id"]
        ids = {node["sessions"][0]["session_id"] for node in answer["nodes"]}
        for i, node in zip(nodes, answer["nodes"]):
            self.daemons[i].until_records(node["sessions"][0]["session_id"], 1, seconds=120)
        self.fleet(nodes, "stop", fleet_id, timeout=f"{int(60 * SCALE)}s")
        self.assertEqual(self.left("twice", nodes), [(nodes[0], other)])
        self.daemons[nodes[0]].ctl("stop", other)
        out = os.path.join(self.folder, "by-id")
        self.fleet(nodes, "fetch", fleet_id, "--out", out)
        self.assertEqual({entry["session_id"] for entry in read_json(out, "fleet.json")["dumps"]}, ids)
        self.fleet(nodes, "stop", "0123456789ab", expect=4)

    def test_commands_that_ask(self):
        """Each node's answer is what the command says of that node alone; the dead one is named."""
        nodes, dead = GOOD[:2], min(DEAD)
        answer, _ = self.fleet(nodes[:1], "start", "--job", "asked", *WANTED)
        job = answer["nodes"][0]["sessions"][0]["session_id"]
        self.addCleanup(self.daemons[nodes[0]].ctl, "stop", job)
        for command in (("jobs",), ("devices",), ("top", "--once"),
                        ("check", "--options-json", '{"dvpp_freq":10}')):
            answer, stderr = self.fleet([*nodes, dead], *command, expect=5, judge=False)
            self.assertEqual([node["exit_code"] for node in answer["nodes"]], [0, 0, 6], command)
            self.assertIn(self.addresses[dead], stderr)
            for i, node in zip(nodes, answer["nodes"]):
                own = self.daemons[i].ctl(*command)
                self.assertEqual(set(node["answer"]), set(own), command)
                if command == ("devices",):
                    self.assertEqual([d["id"] for d in node["answer"]["devices"]],
                                     [d["id"] for d in own["devices"]])
        answer, _ = self.fleet(nodes, "check", "--options-json", '{"dvpp_freq":101}', expect=3,
                               judge=False)
        self.assertEqual([node["exit_code"] for node in answer["nodes"]], [3, 3])
        # A node that does not have it does not count against the one that has.
        answer, _ = self.fleet(nodes, "show", job, judge=False)
        self.assertEqual([node["exit_code"] for node in answer["nodes"]], [0, 4])
        self.assertIn(job, json.dumps(answer["nodes"][0]["answer"]))
        text, _ = self.fleet(nodes, "devices", json_output=False)
        self.assertIn(self.addresses[nodes[0]], text)

    def test_all_or_nothing(self):
        answer, stderr = self.fleet([*GOOD[:12], REFUSING[0]], "start", "--job", "nothing",
                                    "--all-or-nothing", *WANTED, expect=3)
        self.assert_named(stderr, "stopped again", GOOD[:12])
        self.assertTrue(all(node["undone"] for node in answer["nodes"][:-1]))
        self.assertEqual(self.left("nothing"), [])
        # One that is away: nothing is started anywhere.
        self.fleet([*GOOD[:4], DEAD[0]], "start", "--job", "nothing", "--all-or-nothing", *WANTED,
                   expect=6)
        for i in GOOD[:4]:
            self.assertEqual(len(self.daemons[i].ctl("list", "--job", "nothing")["sessions"]), 1)

    def test_an_instant_of_the_users(self):
        answer, _ = self.fleet(GOOD[:3], "start", "--job", "later", "--in", "1h", *WANTED)
        for node in answer["nodes"]:
            self.assertEqual(node["sessions"][0]["state"], "scheduled")
        self.fleet(GOOD[:3], "stop", "--job", "later")
        self.assertEqual(self.left("later"), [])

    def test_an_interrupt_leaves_nothing_behind(self):
        # It waits for the slow ones, and is interrupted while it does.
        command = RUNNER + [PROFCTL, "--nodes", ",".join(self.addresses[i]
                                                         for i in [*GOOD[:8], *SLOW]),
                            "--node-timeout", "600s", "--tls-dir",
                            os.path.join(self.tls, "clients", self.user), "start", "--job",
                            "interrupted", *WANTED]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              stdin=subprocess.DEVNULL) as process:
            # Blocked: it takes signals when it looks for them.
            eventually(lambda: RUNNER or blocks(process.pid, signal.SIGINT), 60, what="profctl asks the nodes")
            process.send_signal(signal.SIGINT)
            _, stderr = process.communicate(timeout=scaled(60))
        self.assertEqual(process.returncode, 5, stderr)
        self.assertIn("interrupted", stderr)
        self.assertEqual(self.left("interrupted"), [])

    def test_a_file_of_nodes(self):
        path = os.path.join(self.folder, "nodes")
        host, port = self.addresses[GOOD[0]].rsplit(":", 1)
        write_text(path, f"# two\n\n{host}:[{port}]\nlocalhost:{port}  # the same by another name\n"
                         f"{host}:{port}\nunix:{self.daemons[GOOD[1]].socket}\n")
        answer, stderr = self.fleet(("--nodes-file", path), "status")
        self.assertEqual([node["node"] for node in answer["nodes"]],
                         [f"{host}:{port}", f"localhost:{port}",
                          f"unix:{self.daemons[GOOD[1]].socket}"])
        self.assertIn("taken once", stderr)

    def test_nodes_of_pods(self):
        programs = os.path.join(self.folder, "programs")
        os.makedirs(programs, exist_ok=True)
        kubectl = os.path.join(programs, "kubectl")
        pods = {"items": [
            {"spec": {"nodeName": "localhost"}, "status": {"phase": "Running", "hostIP": "127.0.0.1"}},
            {"spec": {"nodeName": "localhost"}, "status": {"phase": "Running", "hostIP": "127.0.0.1"}},
            {"spec": {}, "status": {"phase": "Pending"}}]}
        write_text(kubectl, "#!/bin/sh\necho \"$@\" >" + programs + "/arguments\ncat <<'EOF'\n" +
                            json.dumps(pods) + "\nEOF\n")
        os.chmod(kubectl, 0o755)
        env = dict(os.environ, PATH=programs + ":" + os.environ["PATH"])
        port = self.addresses[GOOD[0]].rsplit(":", 1)[1]
        answer, _ = self.fleet(("--k8s", "app=train", "--k8s-namespace", "ml", "--node-port", port),
                               "status", env=env)
        self.assertEqual([node["node"] for node in answer["nodes"]], ["localhost"])
        self.assertEqual(read_text(programs + "/arguments").split(),
                         ["get", "pods", "--selector=app=train", "--output=json", "--namespace=ml"])


if __name__ == "__main__":
    main()
