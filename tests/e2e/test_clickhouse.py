#!/usr/bin/env python3
"""Runs in ClickHouse: profctl export --to loads them into a real server, analyze, advise and report --from answer as of the files."""

import contextlib
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import clickhouse_server
from clickhouse_server import Cluster, ClickHouse, Gate
from profd_harness import BUILD, REPO, eventually, main
from test_activity import ActivityCase
from test_report import make_pipeline, make_rank

PROFCTL = os.path.join(BUILD, "bin", "profctl")
DATA = os.environ.get("PROFD_SHARED_DATA", os.path.join(os.path.dirname(REPO), "shared", "data"))
DATABASE = "profiles"
OTHER_NAMES = {"run", "path", "inputs", "store"}  # of the JSON: where a run comes from


def profctl(*arguments, code=0, env=None, seconds=120):
    done = subprocess.run([PROFCTL, *arguments], capture_output=True, text=True, timeout=seconds, check=False, env={**os.environ, **(env or {})})
    if done.returncode != code:
        raise AssertionError(f"{arguments}: {done.returncode}: {done.stdout} {done.stderr}")
    return done


def profctl_json(*arguments, **how):
    return json.loads(profctl("--json", *arguments, **how).stdout)


def sort_key(row):
    """A row of a list by what is no float: rows with equal times come in any order."""
    return json.dumps([[name, value] for name, value in sorted(row.items()) if not isinstance(value, (float, list, dict))], sort_keys=True)


class Answers(unittest.TestCase):
    def assert_same(self, got, want, where="$"):
        if isinstance(want, dict):
            self.assertIsInstance(got, dict, where)
            self.assertEqual(set(got) - OTHER_NAMES, set(want) - OTHER_NAMES, where)
            for name in set(want) - OTHER_NAMES:
                self.assert_same(got[name], want[name], f"{where}.{name}")
        elif isinstance(want, list):
            self.assertEqual(len(got), len(want), where)
            if want and isinstance(want[0], dict):
                got, want = sorted(got, key=sort_key), sorted(want, key=sort_key)
            for number, (mine, other) in enumerate(zip(got, want)):
                self.assert_same(mine, other, f"{where}[{number}]")
        elif isinstance(want, float) or isinstance(got, float):
            self.assertIsNotNone(got, where)
            self.assertTrue(math.isclose(got, want, rel_tol=1e-9, abs_tol=1e-9), f"{where}: {got}, not {want}")
        else:
            self.assertEqual(got, want, where)


@unittest.skipIf(clickhouse_server.missing(), clickhouse_server.missing())
class OneServer(Answers):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="profd-clickhouse-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.server = ClickHouse(os.path.join(cls.folder, "server"))
        cls.addClassCleanup(cls.server.stop)
        cls.server.start()
        cls.run_path = os.path.join(cls.folder, "run")
        for rank in (0, 1):
            make_rank(cls.run_path, rank)
        make_rank(os.path.join(cls.folder, "large"), 0, kernels=60_000)
        cls.pipeline = os.path.join(cls.folder, "minddata")
        make_pipeline(cls.pipeline)

    def url(self, run="", **how):
        return self.server.url(DATABASE, **how) + (f"/{run}" if run else "")

    def load(self, path, run, *flags, **how):
        return profctl_json("export", path, "--to", self.url(), "--run", run, *flags, **how)

    def counted(self, table, run):
        """Rows that count."""
        return self.server.number(f"SELECT count() FROM {DATABASE}.{table} WHERE run = '{run}' AND load IN "
                                  f"(SELECT max(load) FROM {DATABASE}.loads WHERE run = '{run}' AND state = 1 GROUP BY who)")

    def all_rows(self, table, run):
        return self.server.number(f"SELECT count() FROM {DATABASE}.{table} WHERE run = '{run}'")

    def assert_answers_as(self, path, run):
        want = profctl_json("analyze", path)
        got = profctl_json("analyze", "--from", self.url(run))
        self.assertTrue(want["ranks"])
        self.assert_same(got["ranks"], want["ranks"])
        for part in ("queries", "rows_read", "bytes_read"):
            self.assertGreater(got["store"][part], 0, part)
        return got

    def test_analyses_are_those_of_the_files(self):
        done = self.load(self.run_path, "same")
        self.assertEqual([rank["rank"] for rank in done["ranks"]], ["0", "1"])
        self.assertEqual(self.counted("kernels", "same"), 1000)
        self.assert_answers_as(self.run_path, "same")
        self.load(self.pipeline, "pipeline")
        self.assert_answers_as(self.pipeline, "pipeline")
        # Some analyses read less.
        some = profctl_json("analyze", "--from", self.url(), "--run", "same", "--only", "overall,operator_types")
        self.assert_same(some["ranks"], profctl_json("analyze", self.run_path, "--only", "overall,operator_types")["ranks"])
        one = profctl_json("analyze", "--from", self.url("same"), "--ranks", "1")
        self.assertEqual([rank["rank"] for rank in one["ranks"]], [1])
        text = profctl("analyze", "--from", self.url("same"), "--only", "overall")
        self.assertIn("Time in all", text.stdout)
        self.assertRegex(text.stderr, r"ClickHouse: \d+ queries, .* rows and .* read")

    def test_findings_comparison_and_page_are_those_of_the_files(self):
        self.load(self.run_path, "advice")
        self.assert_same(profctl_json("advise", "--from", self.url("advice"))["findings"], profctl_json("advise", self.run_path)["findings"])
        compared = profctl_json("analyze", "--from", self.url("advice"), "--baseline", self.pipeline)["compare"]
        self.assert_same(compared["differences"], profctl_json("analyze", self.run_path, "--baseline", self.pipeline)["compare"]["differences"])
        page = os.path.join(self.folder, "page.html")
        self.assertEqual(profctl_json("report", "--from", self.url("advice"), "-o", page)["ranks"], 2)
        local = os.path.join(self.folder, "local.html")
        profctl("report", self.run_path, "-o", local)
        self.assertLess(abs(os.path.getsize(page) - os.path.getsize(local)), 2000)

    @unittest.skipUnless(os.path.isdir(DATA), "the data with known answers is not there")
    def test_known_data_of_every_kind(self):
        for number, path in enumerate((("pytorch", "pt_text_level1"), ("pytorch", "pt_db_level1"), ("mindinsight", "JOB1"), ("mindinsight", "cluster_propose"),
                                       ("made", "cluster_slow_link"), ("made", "gc_at_1000us"))):
            with self.subTest(path=path):
                self.load(os.path.join(DATA, *path), f"known{number}")
                self.assert_answers_as(os.path.join(DATA, *path), f"known{number}")
                self.assert_same(profctl_json("advise", "--from", self.url(f"known{number}"))["findings"],
                                 profctl_json("advise", os.path.join(DATA, *path))["findings"])

    def test_overview_is_the_sum_of_the_ranks(self):
        self.load(self.run_path, "overview")
        got = profctl_json("analyze", "--from", self.url("overview"), "--overview")
        ranks = profctl_json("analyze", self.run_path)["ranks"]
        self.assertEqual(got["overall"]["ranks"], 2)
        self.assertEqual(got["overall"]["executions"], 1000)
        sums = {}
        for rank in ranks:
            for row in rank["operators"]:
                key = row["name"], row["type"], row["core"]
                count, total = sums.get(key, (0, 0))
                sums[key] = count + row["count"], total + row["total_ms"]
        self.assertEqual(len(got["operators"]), len(sums))
        for row in got["operators"]:
            count, total = sums[row["name"], row["type"], row["core"]]
            self.assertEqual(row["count"], count)
            self.assertAlmostEqual(row["total_ms"], total, 6)
            self.assertAlmostEqual(row["share"], total / sum(each[1] for each in sums.values()), 9)
        self.assertEqual([(step["step"], step["ranks"]) for step in got["steps"]], [(3, 2)])
        self.assertAlmostEqual(got["communication"][0]["elapse_ms"], sum(row["elapse_ms"] for rank in ranks for row in rank["communication"]))
        self.assertEqual({(row["src"], row["dst"]) for row in got["links"]}, {(row["src"], row["dst"]) for row in ranks[0]["links"]})
        self.assertIn("Ranks that compute longest", profctl("analyze", "--from", self.url("overview"), "--overview").stdout)

    def test_steps_without_shares_are_in_no_mean(self):
        """Of parts, in the overview and the dashboard; their time counts."""
        self.load(self.run_path, "shares")
        load = self.server.number(f"SELECT max(load) FROM {DATABASE}.loads WHERE run = 'shares' AND rank = 1")
        columns = ("run, rank, load, step, has_times, start_ns, end_ns, has_shares, computing_ms, communication_ms, uncovered_ms, free_ms")
        self.server.ask(f"INSERT INTO {DATABASE}.steps ({columns}) VALUES ('shares', 1, {load}, 4, 1, 1000000000, 3000000000, 0, 0, 0, 0, 0)")
        ranks = profctl_json("analyze", "--from", self.url("shares"))["ranks"]
        got = profctl_json("analyze", "--from", self.url("shares"), "--overview")
        slow = {row["rank"]: row for row in got["slow_ranks"]}
        self.assertEqual(slow[1]["steps"], 2)
        for name in ("computing_ms", "communication_ms", "uncovered_communication_ms", "free_ms", "total_ms"):
            self.assertAlmostEqual(slow[1][name], ranks[1]["step_average"][name], 6, name)
        without = next(step for step in got["steps"] if step["step"] == 4)
        self.assertEqual([without[name] for name in ("mean_ms", "computing_ms", "max_computing_ms", "slowest_rank")], [2000, None, None, None])
        by_title = {panel["title"]: panel["targets"][0]["rawSql"].replace("${database}", DATABASE).replace("${run:sqlstring}", "'shares'")
                    for panel in self.dashboard()["panels"]}
        [shown] = [row for row in self.server.rows(by_title["Ranks, by computing per step"]) if row[0] == 1]
        self.assertAlmostEqual(shown[3], slow[1]["computing_ms"], 6)
        for title, computing in (("Parts of a step", 1), ("Computing of the ten slowest ranks", 2)):
            self.assertTrue(all(row[computing] > 0 for row in self.server.rows(by_title[title])), title)

    def test_a_second_load_replaces_the_first(self):
        self.load(self.run_path, "again")
        first = {table: self.counted(table, "again") for table in ("kernels", "slices", "steps", "operators", "memory", "samples")}
        self.load(self.run_path, "again")
        self.assertEqual({table: self.counted(table, "again") for table in first}, first)
        self.assert_answers_as(self.run_path, "again")
        for table, count in first.items():
            eventually(lambda table=table, count=count: self.all_rows(table, "again") == count, seconds=30, what=f"old rows of {table} are deleted")
        # What has not changed can be left out.
        done = self.load(self.run_path, "again", "--resume")
        self.assertEqual((done["ranks"], done["skipped_sources"]), ([], 2))

    def test_a_killed_load_leaves_nothing(self):
        large = os.path.join(self.folder, "large")
        self.load(self.run_path, "killed", "--resume")  # rank 0 is there, from another directory
        before = self.counted("kernels", "killed")
        statements = 30  # the tables are made, and rows are on their way
        gate = Gate(self.server.http, statements)
        self.addCleanup(gate.stop)
        loader = subprocess.Popen([PROFCTL, "export", large, "--to", self.url(port=gate.port), "--run", "killed"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(loader.wait)
        self.addCleanup(loader.kill)
        self.assertTrue(gate.held.wait(60), "the loader has come so far")
        eventually(lambda: self.all_rows("kernels", "killed") > before, seconds=30, what="rows of the new load are there")
        loader.send_signal(signal.SIGKILL)
        loader.wait()
        self.assertEqual(self.counted("kernels", "killed"), before)
        self.assert_answers_as(self.run_path, "killed")
        # The next load of the rank takes its place, and cleans up behind the other.
        self.load(large, "killed")
        self.assertEqual(self.counted("kernels", "killed"), 60_000 + before // 2)
        eventually(lambda: self.all_rows("kernels", "killed") == 60_000 + before // 2, seconds=30, what="rows of the killed load are deleted")
        got = profctl_json("analyze", "--from", self.url("killed"), "--ranks", "0", "--only", "timeline")
        self.assertEqual(got["ranks"][0]["timeline"]["executions"], 60_000)

    def test_a_server_that_goes_away(self):
        gate = Gate(self.server.http, 30, close=True)
        self.addCleanup(gate.stop)
        done = profctl("export", os.path.join(self.folder, "large"), "--to", self.url(port=gate.port), "--run", "gone", code=6)
        self.assertIn(f"127.0.0.1:{gate.port}", done.stderr)
        self.assertEqual(self.counted("kernels", "gone"), 0)
        done = profctl("analyze", "--from", self.url("gone"), code=4)
        self.assertIn("no run gone", done.stderr)
        port = clickhouse_server.free_ports(1)[0]
        done = profctl("export", self.run_path, "--to", self.url(port=port), "--run", "gone", code=6)
        self.assertIn("cannot be reached", done.stderr)

    def test_two_loads_at_once(self):
        """Both end; one of them counts, complete."""
        loaders = [subprocess.Popen([PROFCTL, "export", self.run_path, "--to", self.url(), "--run", "both"], stdout=subprocess.DEVNULL,
                                    stderr=subprocess.PIPE, text=True) for _ in range(2)]
        outcomes = [(loader.communicate(timeout=120)[1], loader.returncode) for loader in loaders]
        self.assertIn(0, [code for _, code in outcomes], outcomes)
        for text, code in outcomes:
            if code != 0:
                self.assertIn("load it again", text)
        self.assertEqual(self.counted("kernels", "both"), 1000)
        self.assert_answers_as(self.run_path, "both")

    @unittest.skipIf(clickhouse_server.missing_server(), clickhouse_server.missing_server())
    def test_refusals_are_plain(self):
        wrong = profctl("export", self.run_path, "--to", self.url(password="not it"), "--run", "x", code=3)
        self.assertIn("Wrong password for user loader", wrong.stderr)
        self.assertNotIn("not it", wrong.stderr)
        self.assertNotIn("DB::Exception", wrong.stderr)
        # From the environment, so that it is not on the command line.
        address = f"clickhouse://127.0.0.1:{self.server.http}/{DATABASE}"
        env = {"PROFCTL_CLICKHOUSE_USER": clickhouse_server.USER, "PROFCTL_CLICKHOUSE_PASSWORD": clickhouse_server.PASSWORD}
        profctl("export", self.run_path, "--to", address, "--run", "environment", env=env)
        for arguments, text in ((("export", self.run_path, "--to", self.url(), "--format", "csv"), "--format is for files"),
                                (("export", self.run_path, "--run", "x"), "--to"),
                                (("export", self.run_path, "--to", "clickhouse://127.0.0.1/a-b"), "name of the database"),
                                (("analyze", self.run_path, "--from", self.url("x")), "either"),
                                (("analyze", "--from", self.url()), "--run"),
                                (("analyze", "--from", self.url("x"), "--ranks", "1-x"), "--ranks"),
                                (("analyze", self.run_path, "--overview", "--only", "steps", "--baseline", self.run_path, "--cluster-out", self.folder, "--ranks", "1"),
                                 "--overview needs --from, the address of a run in a database; it does not go with a path, --only, --baseline, --cluster-out, --ranks"),
                                (("analyze", "--from", self.url("x"), "--overview", "--cluster-out", self.folder), "--overview: it does not go with --cluster-out")):
            with self.subTest(arguments=arguments[2:]):
                self.assertIn(text, profctl(*arguments, code=2).stderr)

    def test_names_are_no_statements(self):
        name = "it's \\'; DROP TABLE x --"
        self.load(self.run_path, name)
        got = profctl_json("analyze", "--from", self.url(), "--run", name, "--only", "overall")
        self.assertEqual(len(got["ranks"]), 2)

    def dashboard(self):
        with open(os.path.join(REPO, "dashboards", "clickhouse", "profd-runs.json"), encoding="utf-8") as file:
            return json.load(file)

    def test_dashboard(self):
        """Every query of it is understood, and answers as the run is."""
        self.load(self.run_path, "dashboard")
        subprocess.run([sys.executable, os.path.join(REPO, "dashboards", "generate_runs.py"), "--check"], check=True)
        dashboard = self.dashboard()

        def answer(query):
            for name, value in (("database", DATABASE), ("run:sqlstring", "'dashboard'"), ("counter:sqlstring", "'AI Core Freq MHz'")):
                query = query.replace("${" + name + "}", value)
            self.assertNotIn("$", query)
            return self.server.rows(query)

        variables = {each["name"]: each["query"] for each in dashboard["templating"]["list"] if each["type"] == "query"}
        self.assertIn(["dashboard"], answer(variables["run"]))
        counters = answer(variables["counter"])
        self.assertTrue(counters)
        got = {panel["title"]: answer(panel["targets"][0]["rawSql"].replace("${counter:sqlstring}", "'" + counters[0][0] + "'")) for panel in dashboard["panels"]}
        # JSON of old releases has numbers of 64 bits as texts.
        self.assertEqual(int(got["Ranks"][0][0]), 2)
        self.assertEqual(int(got["Executions"][0][0]), 1000)
        self.assertEqual(len(got["Operators by share"]), 15)
        self.assertEqual({row[0] for row in got["Ranks, by computing per step"]}, {0, 1})
        # Of a rank with itself there is none.
        self.assertEqual((got["Links, the slowest first"][0][0], got["Links, the slowest first"][0][1]), ("0", "1"))
        for title in ("Computing of the ten slowest ranks", "Parts of a step", "Operators", "Communication", "Findings", "Counter $counter"):
            self.assertTrue(got[title], title)

    def test_a_run_is_dropped_by_its_partition(self):
        self.load(self.run_path, "old")
        for table, in self.server.rows(f"SELECT name FROM system.tables WHERE database = '{DATABASE}'"):
            self.server.ask(f"ALTER TABLE {DATABASE}.{table} DROP PARTITION 'old'")
            self.assertEqual(self.all_rows(table, "old"), 0)
        self.assertIn("no run old", profctl("analyze", "--from", self.url("old"), code=4).stderr)

    @unittest.skipIf(clickhouse_server.missing_server(), clickhouse_server.missing_server())
    def test_over_tls(self):
        with contextlib.ExitStack() as stack:
            folder = stack.enter_context(clickhouse_server.temporary_folder())
            key, certificate = os.path.join(folder, "key.pem"), os.path.join(folder, "certificate.pem")
            subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
                            "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate], check=True, capture_output=True)
            port = clickhouse_server.free_ports(1)[0]
            server = ClickHouse(os.path.join(folder, "server"), more=f"<https_port>{port}</https_port><openSSL><server><certificateFile>{certificate}</certificateFile>"
                                f"<privateKeyFile>{key}</privateKeyFile><verificationMode>none</verificationMode></server></openSSL>")
            stack.callback(server.stop)
            server.start()
            address = server.url(DATABASE, port=port, scheme="clickhouses", host="localhost")
            done = profctl("export", self.run_path, "--to", address, "--run", "tls", code=3)
            self.assertIn("certificate", done.stderr)
            profctl("export", self.run_path, "--to", address, "--run", "tls", "--tls-ca", certificate)
            got = profctl_json("analyze", "--from", address + "/tls", "--tls-ca", certificate)
            self.assert_same(got["ranks"], profctl_json("analyze", self.run_path)["ranks"])


@unittest.skipIf(clickhouse_server.missing_server() or clickhouse_server.missing_zookeeper(),
                 clickhouse_server.missing_server() or clickhouse_server.missing_zookeeper())
class TwoShards(Answers):
    """Two shards of two replicas each."""

    def test_distributed_and_replicated(self):
        with contextlib.ExitStack() as stack:
            folder = stack.enter_context(clickhouse_server.temporary_folder())
            path = os.path.join(folder, "run")
            for rank in range(6):
                make_rank(path, rank, kernels=200)
            cluster = Cluster(os.path.join(folder, "cluster"))
            stack.callback(cluster.stop)
            first, last = cluster.nodes[0], cluster.nodes[-1]
            for _ in range(2):  # the second replaces the first
                profctl("export", path, "--to", first.url(DATABASE), "--run", "r", "--cluster", clickhouse_server.CLUSTER)
            want = profctl_json("analyze", path)["ranks"]
            for node in (first, last):
                eventually(lambda node=node: node.number(f"SELECT count() FROM {DATABASE}.kernels WHERE run = 'r'") == 1200, seconds=30,
                           what="old rows are deleted on every shard and replica")
                self.assert_same(profctl_json("analyze", "--from", node.url(DATABASE) + "/r")["ranks"], want)
            shares = [node.number(f"SELECT count() FROM {DATABASE}.kernels_local") for node in cluster.nodes]
            self.assertTrue(0 < shares[0] < 1200, shares)
            self.assertEqual((shares[0], shares[2]), (shares[1], shares[3]))
            self.assertEqual(shares[0] + shares[2], 1200)
            self.assertEqual(profctl_json("analyze", "--from", last.url(DATABASE) + "/r", "--overview")["overall"]["ranks"], 6)
            done = profctl("export", path, "--to", first.url(DATABASE), "--run", "r", code=3)
            self.assertIn("--cluster", done.stderr)
            # A replica of each shard is enough.
            cluster.nodes[1].stop()
            self.assert_same(profctl_json("analyze", "--from", first.url(DATABASE) + "/r", "--only", "overall,operators")["ranks"],
                             profctl_json("analyze", path, "--only", "overall,operators")["ranks"])


@unittest.skipIf(clickhouse_server.missing(), clickhouse_server.missing())
class RecordedJob(ActivityCase, Answers):
    """A dump of profd."""

    def test_dump(self):
        job = self.train()
        job.attached(self.daemon, 2)
        session = self.daemon.ctl("start", "--job", job.job_id, "--task-time", "l1", "--training-trace", "on", "--provider", "mspti", "--collector", "hbm=20",
                                  "--duration", "1s")
        dump = self.daemon.until_state(session["session_id"], "done")["dump_path"]
        job.close()
        server = ClickHouse(os.path.join(self.folder, "server"))
        self.stack.callback(server.stop)
        server.start()
        profctl("export", dump, "--to", server.url(DATABASE), "--run", "job")
        want = profctl_json("analyze", dump)["ranks"]
        self.assertEqual(len(want), 2)
        self.assertTrue(want[0]["operators"] and want[0]["steps"] and want[0]["hardware"])
        self.assert_same(profctl_json("analyze", "--from", server.url(DATABASE) + "/job")["ranks"], want)
        facts = {name: value for name, value in server.rows(f"SELECT DISTINCT name, value FROM {DATABASE}.facts WHERE name LIKE 'manifest.%'")}
        self.assertEqual(facts["manifest.session"], session["session_id"])
        self.assertEqual(facts["manifest.option.task_time"], "l1")
        self.assertGreater(server.number(f"SELECT count() FROM {DATABASE}.slices WHERE layer = 'CANN'"), 0)


if __name__ == "__main__":
    main()
