#!/usr/bin/env python3
"""profctl --nodes export --to: nodes load their own dumps into their own database, and on a cluster of shards and replicas."""

import json
import os
import shutil
import signal
import subprocess
import time
import unittest

from clickhouse_server import CLUSTER, Cluster, Gate, needs_zookeeper
from processes import blocks
from profd_harness import ALICE, BOB, IS_ROOT, PROFCTL, RUNNER, demote, eventually, group_id, main, scaled
from test_archive import ENV, MUCH, OK, PARTIAL, REFUSED, ArchiveCase
from test_fleet import call as profctl
from tls_files import tls_section

NOT_FOUND, USAGE = 4, 2
# A busy server may wait for the others' answers to CREATE ... ON CLUSTER as long as its distributed_ddl_task_timeout.
DDL_SECONDS = scaled(200)
BY_REQUEST = ["label=never"]


class FleetCase(ArchiveCase):
    """Two nodes. What they have in the database was asked for."""

    def setUp(self):
        super().setUp()
        with open(self.output, "ab"):
            pass  # for said()
        self.tls = os.path.join(self.folder, "tls-" + self.database)
        self.user = "alice" if IS_ROOT else "me"
        self.uid = BOB if IS_ROOT else os.geteuid()
        done = profctl("tls", "init", self.tls, "--hosts", "localhost,127.0.0.1", "--users", self.user)
        self.assertEqual(done.returncode, OK, done.stderr)
        self.tls_config = {"tls": tls_section(self.tls, users=[f"{self.user}={self.uid}"])}

    def node(self, **how):
        """A daemon that other machines may call."""
        return self.enterContext(self.daemon(more=self.tls_config, **{"which": BY_REQUEST, **how}))

    def record_on(self, d, *target):
        """A finished session of the user's; each node has a device of its own, as they share a host's name."""
        session = self.call([d], "start", *MUCH, "--job", "train", *target, expect=(OK, PARTIAL))["nodes"][0]["sessions"][0]["session_id"]
        d.until_records(session, 10)
        self.call([d], "stop", session, expect=(OK, PARTIAL))
        eventually(lambda: d.show(session)["state"] == "done", what="the dump is complete")
        return session

    def command(self, nodes, *arguments):
        addresses = ",".join(d.node["tls_address"] for d in nodes)
        return ["--nodes", addresses, "--tls-dir", os.path.join(self.tls, "clients", self.user), *arguments]

    def call(self, nodes, *arguments, expect=OK):
        done = profctl(*self.command(nodes, "--json", *arguments))
        self.assertIn(done.returncode, expect if isinstance(expect, tuple) else (expect,), done.stdout + done.stderr + self.said())
        self.stderr = done.stderr
        return json.loads(done.stdout) if done.stdout else None

    def export(self, nodes, *arguments, expect=OK, to=None, seconds=scaled(60)):
        return self.call(nodes, "--timeout", f"{seconds:.0f}s", "export", "--to", to or self.url(), *arguments, expect=expect)

    def loading(self, d):
        """The node's profctl archive, until the test ends."""
        work = os.path.join(self.folder, f"work-{self.database}-{d.pid}")
        os.mkdir(work, 0o700)
        if IS_ROOT:
            os.chown(work, ALICE, ALICE)
        before, self.work = self.work, work
        process = self.enterContext(self.companion(d))
        self.work = before
        return process


class Fleet(FleetCase):
    def test_each_node_loads_its_own(self):
        nodes = [self.node(), self.node()]
        sessions = [self.record_on(d, "--devices", number) for number, d in enumerate(nodes)]
        for d in nodes:
            self.loading(d)
        answer = self.export(nodes, "--job", "train", "--run", "llama")
        run = f"{self.uid}-llama"
        dumps = [dump for node in answer["nodes"] for dump in node["dumps"]]
        self.assertEqual([dump["session_id"] for dump in dumps], sessions)
        self.assertEqual({(dump["state"], dump["run"]) for dump in dumps}, {("loaded", run)})
        committed = self.committed()
        self.assertEqual(list(committed), [run])
        self.assertEqual(sorted(who.rsplit("/", 1)[1] for who in committed[run]), ["npu0", "npu1"])
        self.assertEqual(sum(committed[run].values()), sum(dump["rows"] for dump in dumps))
        # Once more: at once, and nothing is loaded again.
        def loaded():
            return [d.metric("profd_archive_loaded_total") for d in nodes]
        eventually(lambda: loaded() == [1, 1], what="each node's metrics have what it loaded")  # they follow once a second
        self.export(nodes, "--job", "train", "--run", "llama")
        self.export(nodes, *sessions)
        self.assertEqual(loaded(), [1, 1])
        # Under another name, which the analyses find.
        self.export(nodes, sessions[0], "--run", "bert")
        self.assertEqual(sorted(self.committed()), [f"{self.uid}-bert", run])
        read = profctl("analyze", "--from", self.url(), "--run", run, env=ENV)
        self.assertEqual(read.returncode, OK, read.stderr)
        # As people see it.
        text = profctl(*self.command(nodes, "export", "--job", "train", "--to", self.url()))
        self.assertEqual(text.returncode, OK, text.stderr)
        self.assertEqual(text.stdout.count(" loaded "), 2, text.stdout)
        self.export(nodes, "--job", "nobodys", expect=NOT_FOUND)

    def test_a_node_refuses_and_the_other_continues(self):
        here, elsewhere, off = self.node(), self.node(port=1), self.node()
        config = self.config(more=self.tls_config)
        config["archive"]["to"] = ""
        off.write_config(config)
        os.kill(off.pid, signal.SIGHUP)
        for number, d in enumerate((here, elsewhere)):
            self.record_on(d, "--devices", number)
        self.loading(here)
        eventually(lambda: off.ctl("status")["archive"] is None, what="it archives nothing")
        answer = self.export([here, elsewhere, off], "--job", "train", expect=PARTIAL)
        states = [node["state"] for node in answer["nodes"]]
        self.assertEqual(states, ["ok", "refused", "refused"])
        self.assertIn(f"this node loads into clickhouse://127.0.0.1:1/{self.database} (archive.to) only", answer["nodes"][1]["error"]["message"])
        self.assertIn("archive.to is not set", answer["nodes"][2]["error"]["message"])
        self.assertEqual(elsewhere.metric("profd_archive_waiting_dumps"), 0)
        # Nowhere else, whatever a client says.
        self.export([here], "--job", "train", to="clickhouse://127.0.0.1:9/evil", expect=REFUSED)
        self.export([here], "--job", "train", to="clickhouse://me:secret@127.0.0.1/x", expect=USAGE)
        self.assertNotIn("secret", self.stderr + here.log(1000))
        self.assertIn("give --job JOB", profctl(*self.command([here], "export", "--to", self.url())).stderr)
        self.assertIn("--job belongs to --nodes", profctl("export", "--job", "train", "--to", self.url()).stderr)

    def test_dumps_not_confirmed_stay_queued(self):
        gate = Gate(self.server.http, statements=0)
        self.addCleanup(gate.stop)
        d = self.node(port=gate.port)
        first = self.record_on(d, "--devices", 0)
        to = self.url(gate.port)
        self.assertEqual(self.export([d], first, "--no-wait", to=to)["nodes"][0]["dumps"][0]["state"], "waiting")
        answer = self.export([d], first, seconds=1, to=to, expect=PARTIAL)
        self.assertIn("systemctl enable --now profd-archive", answer["nodes"][0]["note"])
        self.assertIn("stay in the queues", self.stderr)
        self.loading(d)
        process = subprocess.Popen(RUNNER + [PROFCTL, *map(str, self.command([d], "export", first, "--to", to))], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.assertTrue(gate.held.wait(scaled(60)), self.said())
        # It takes the signal itself, and has asked by now.
        eventually(lambda: blocks(process.pid, signal.SIGINT), what="profctl waits for signals")
        time.sleep(scaled(1))
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=scaled(60))
        self.assertEqual(process.returncode, PARTIAL, out + err)
        self.assertIn("interrupted", err)
        self.assertIn("are loaded without this command", err)
        # The next one waits for the same.
        self.reload(d, which=BY_REQUEST, more=self.tls_config)
        gate.stop()
        self.export([d], first)

    @unittest.skipUnless(IS_ROOT, "needs root to become another user")
    def test_only_ones_own(self):
        d = self.node()
        session = self.record_on(d, "--devices", 0)
        command = RUNNER + [PROFCTL, "--nodes", "unix:" + d.socket, "export", session, "--to", self.url(), "--no-wait"]
        for who, expect in ((ALICE + 5, NOT_FOUND), (ALICE, REFUSED), (BOB, OK)):
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=scaled(60), preexec_fn=demote(who, groups=[group_id()]))
            self.assertEqual(done.returncode, expect, (who, done.stdout, done.stderr))
        self.assertEqual(d.ctl("status")["archive"]["waiting"], 1)


@needs_zookeeper
class TwoShards(FleetCase):
    """[archive] cluster: tables that are replicated and distributed."""

    def test_nodes_load_into_a_cluster(self):
        folder = os.path.join(self.folder, "cluster")
        cluster = Cluster(folder)
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        self.addCleanup(cluster.stop)
        ports = [cluster.nodes[0].http, cluster.nodes[-1].http]
        # Each node loads by another server of the cluster.
        nodes = [self.node(port=port, cluster=CLUSTER, devices=4) for port in ports]
        for number, d in enumerate(nodes):
            self.record_on(d, "--devices", f"{2 * number}-{2 * number + 1}")
            self.loading(d)
            self.export([d], "--job", "train", "--run", "r", to=self.url(ports[number]), seconds=DDL_SECONDS)
        run = f"{self.uid}-r"
        for server in cluster.nodes:
            eventually(lambda server=server: server.number(f"SELECT uniq(who) FROM {self.database}.loads WHERE run = '{run}' AND state = 1") == 4,
                       seconds=60, what="all devices are in the cluster, asked anywhere")
        self.assert_spread(cluster, nodes[0], self.url(ports[0]))
        rows = [dump["archive"]["rows"] for d in nodes for dump in d.ctl("list", "--dumps")["dumps"]]
        self.assertTrue(all(int(each) > 0 for each in rows), rows)
        read = profctl("analyze", "--from", self.url(ports[1]), "--run", run, env=ENV)
        self.assertEqual(read.returncode, OK, read.stderr)

    def assert_spread(self, cluster, d, url):
        """Rows lie where the hash of run and rank has them: under enough names both shards have some, and replicas are equal."""
        def rows():
            return [server.number(f"SELECT count() FROM {self.database}.samples_local") for server in cluster.nodes]

        for number in range(12):
            if min(rows()[0], rows()[2]) > 0:
                break
            self.export([d], "--job", "train", "--run", f"r{number}", to=url)
        self.assertGreater(min(rows()[0], rows()[2]), 0, rows())
        for server in cluster.nodes:
            server.ask(f"SYSTEM SYNC REPLICA {self.database}.samples_local")
        self.assertEqual(rows()[::2], rows()[1::2], "replicas are equal")


if __name__ == "__main__":
    main()
