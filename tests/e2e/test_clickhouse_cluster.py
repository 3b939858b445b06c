#!/usr/bin/env python3
"""Runs in the replicated and distributed tables of a cluster, with and without replicas that are away."""

import contextlib
import os
import unittest

from clickhouse_server import CLUSTER, Cluster, needs_server, needs_zookeeper
from profd_harness import eventually, main, profctl, temp_folder
from test_clickhouse import DATABASE, assert_same, profctl_json
from test_report import make_idle, make_rank


@needs_server
@needs_zookeeper
class TwoShards(unittest.TestCase):
    """Two shards of two replicas each."""

    @classmethod
    def setUpClass(cls):
        cls.folder = temp_folder(cls)
        cls.path = os.path.join(cls.folder, "run")
        for rank in range(6):
            make_rank(cls.path, rank, kernels=200)
        cls.cluster = Cluster(os.path.join(cls.folder, "cluster"))
        cls.addClassCleanup(cls.cluster.stop)

    def load(self, database, run="r", **how):
        return profctl("export", self.path, "--to", self.cluster.nodes[0].url(database), "--run", run, "--cluster", CLUSTER, **how)

    @contextlib.contextmanager
    def away(self, *numbers):
        for number in numbers:
            self.cluster.nodes[number].stop()
        try:
            yield
        finally:
            for number in numbers:
                self.cluster.nodes[number].start()

    def shares(self, database, table="kernels"):
        return [node.number(f"SELECT count() FROM {database}.{table}_local") for node in self.cluster.nodes]

    def test_distributed_and_replicated(self):
        first, last = self.cluster.nodes[0], self.cluster.nodes[-1]
        for _ in range(2):  # the second replaces the first
            self.assertNotIn("note", self.load(DATABASE).stderr)
        want = profctl_json("analyze", self.path)["ranks"]
        for node in (first, last):
            eventually(lambda node=node: node.number(f"SELECT count() FROM {DATABASE}.kernels WHERE run = 'r'") == 1200, seconds=30,
                       what="old rows are deleted on every shard and replica")
            assert_same(profctl_json("analyze", "--from", node.url(DATABASE) + "/r")["ranks"], want)
        shares = self.shares(DATABASE)
        self.assertTrue(0 < shares[0] < 1200, shares)
        self.assertEqual((shares[0], shares[2]), (shares[1], shares[3]))
        self.assertEqual(shares[0] + shares[2], 1200)
        idle = os.path.join(self.folder, "idle_ascend_pt")
        make_idle(idle)
        profctl("export", idle, "--to", first.url(DATABASE), "--run", "r", "--cluster", CLUSTER)
        idle_rows = f"SELECT count() FROM {DATABASE}.loads_local WHERE rank = -1 AND state = 1"
        eventually(lambda: sum(node.number(idle_rows) for node in self.cluster.nodes) == 2, seconds=30, what="the load is on both replicas of its shard")
        self.assertEqual(profctl_json("analyze", "--from", last.url(DATABASE) + "/r", "--overview")["overall"]["ranks"], 6)
        done = profctl("export", self.path, "--to", first.url(DATABASE), "--run", "r", expect=3)
        self.assertIn("--cluster", done.stderr)

    def test_replicas_that_are_away(self):
        first = self.cluster.nodes[0]
        want = profctl_json("analyze", self.path, "--only", "overall,operators")["ranks"]
        # A replica of each shard is enough: for the tables, for rows, and for the deletion of those that are replaced.
        with self.away(1, 3):
            for _ in range(2):
                self.assertIn(f"not all servers of cluster {CLUSTER} answered", self.load("away").stderr)
                assert_same(profctl_json("analyze", "--from", first.url("away") + "/r", "--only", "overall,operators")["ranks"], want)
            eventually(lambda: first.number("SELECT count() FROM away.kernels") == 1200, seconds=30, what="the old rows are deleted")
        # They catch up.
        tables = "SELECT count() FROM system.tables WHERE database = 'away'"
        for number in (1, 3):
            node = self.cluster.nodes[number]
            eventually(lambda node=node: node.number(tables) == first.number(tables), seconds=60, what="the tables are made")
        eventually(lambda: (shares := self.shares("away"))[0] == shares[1] and shares[2] == shares[3] and shares[0] + shares[2] == 1200, seconds=60,
                   what="the rows of each shard are on both of its replicas")
        eventually(lambda: (shares := self.shares("away", "loads"))[0] == shares[1] and shares[2] == shares[3], seconds=60, what="and the loads")
        # A run is removed from what is there, and from the others when they are back.
        self.load("away", "other")
        with self.away(1, 3):
            done = profctl("rm", "--from", first.url("away"), "--cluster", CLUSTER, "other")
            self.assertIn(f"not all servers of cluster {CLUSTER} answered", done.stderr)
            eventually(lambda: list(first.rows("SELECT DISTINCT run FROM away.kernels")) == [["r"]], seconds=30, what="it is removed")
        eventually(lambda: self.shares("away")[0] == self.shares("away")[1] and sum(self.shares("away")) == 2400, seconds=60, what="and there, too")
        # Where all of a shard is away nothing can be loaded.
        with self.away(2, 3):
            done = self.load("away", expect=6)
            self.assertIn("no server of a shard can be used: ", done.stderr)
            self.assertIn("Connection refused", done.stderr)
        # A shard that has no tables gets them. While a replica is away each of the statements does not wait for all servers.
        for number in (2, 3):
            self.cluster.nodes[number].ask("DROP DATABASE away")
            self.cluster.nodes[number].ask("CREATE DATABASE away")
        with self.away(1):
            self.load("away")
        assert_same(profctl_json("analyze", "--from", first.url("away") + "/r", "--only", "overall,operators")["ranks"], want)


if __name__ == "__main__":
    main()
