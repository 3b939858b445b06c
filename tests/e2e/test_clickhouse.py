#!/usr/bin/env python3
"""Runs in ClickHouse: profctl export --to loads them into a real server, analyze, advise and report --from answer as of the files."""

import json
import os
import shutil
import signal
import subprocess
import sys
import unittest

import clickhouse_server
import same
from clickhouse_server import Gate, needs_engine, needs_server, started
from free_ports import free_ports
from profd_harness import PROFCTL, REPO, eventually, main, profctl, temp_folder
from test_activity import ActivityCase
from test_report import make_idle, make_pipeline, make_rank
from text_files import files_below, put, read_json, write_text

DATABASE = "profiles"
OTHER_NAMES = {"run", "path", "inputs", "store"}  # of the JSON: where a run comes from


def profctl_json(*arguments, **how):
    return json.loads(profctl("--json", *arguments, **how).stdout)


def sort_key(row):
    """A row of a list by what is not a float: rows with equal times come in any order."""
    return json.dumps([[name, value] for name, value in sorted(row.items()) if not isinstance(value, (float, list, dict))], sort_keys=True)


def make_nameless(path, number):
    """Kernels of a profile whose files say neither rank nor host."""
    os.makedirs(os.path.join(path, "ASCEND_PROFILER_OUTPUT"))
    with open(os.path.join(path, "ASCEND_PROFILER_OUTPUT", "kernel_details.csv"), "w", encoding="utf-8") as file:
        file.write("Name,Type,Accelerator Core,Start Time(us),Duration(us)\n")
        file.writelines(f"MatMul,MatMul,AI_CORE,{1_796_000_000_000_000 + number * 1_000_000 + at * 10},5\n" for at in range(10))


def assert_same(got, want):
    same.assert_same(got, want, but=OTHER_NAMES, order=sort_key)


@needs_engine
class OneServer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = temp_folder(cls)
        cls.server = started(cls, cls.folder)
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
        assert_same(got["ranks"], want["ranks"])
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
        assert_same(some["ranks"], profctl_json("analyze", self.run_path, "--only", "overall,operator_types")["ranks"])
        one = profctl_json("analyze", "--from", self.url("same"), "--ranks", "1")
        self.assertEqual([rank["rank"] for rank in one["ranks"]], [1])
        text = profctl("analyze", "--from", self.url("same"), "--only", "overall")
        self.assertIn("Time in all", text.stdout)
        self.assertRegex(text.stderr, r"ClickHouse: \d+ queries, .* rows and .* read")

    def test_findings_comparison_and_page_are_those_of_the_files(self):
        self.load(self.run_path, "advice")
        assert_same(profctl_json("advise", "--from", self.url("advice"))["findings"], profctl_json("advise", self.run_path)["findings"])
        compared = profctl_json("analyze", "--from", self.url("advice"), "--baseline", self.pipeline)["compare"]
        assert_same(compared["differences"], profctl_json("analyze", self.run_path, "--baseline", self.pipeline)["compare"]["differences"])
        page = os.path.join(self.folder, "page.html")
        done = profctl_json("report", "--from", self.url("advice"), "-o", page)
        self.assertEqual((done["ranks"], done["problems"], done["store"]["rows_read"] > 0), (2, 0, True))
        local = os.path.join(self.folder, "local.html")
        profctl("report", self.run_path, "-o", local)
        self.assertLess(abs(os.path.getsize(page) - os.path.getsize(local)), 2000)

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
        self.assertEqual({(row["src"], row["dst"]) for row in got["links"]},
                         {(row["src"], row["dst"]) for rank in ranks for row in rank["links"]})
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

    def test_steps_without_times(self):
        """They are as long as their parts, in the overview as of the files, where a rank has no others."""
        path = os.path.join(self.folder, "parts")
        for rank in (0, 1):
            put(os.path.join(path, f"r{rank}_ascend_pt"), f"profiler_info_{rank}.json", "{}")
            put(os.path.join(path, f"r{rank}_ascend_pt", "ASCEND_PROFILER_OUTPUT"), "step_trace_time.csv",
                  "Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free\n" +
                  "".join(f"{rank},{step},{(4 + rank) * 1000},1000,500,1500,{step * 1000}\n" for step in (1, 2)))
        self.load(path, "parts")
        ranks = profctl_json("analyze", path)["ranks"]
        self.assertEqual([[step["total_ms"] for step in rank["steps"]] for rank in ranks], [[6, 7], [7, 8]])
        got = profctl_json("analyze", "--from", self.url("parts"), "--overview")
        self.assertEqual((got["overall"]["ranks"], got["overall"]["steps"]), (2, 2))
        self.assertEqual([[step[name] for name in ("step", "ranks", "mean_ms", "max_ms", "longest_rank", "computing_ms", "slowest_rank")] for step in got["steps"]],
                         [[1, 2, 6.5, 7, 1, 4.5, 1], [2, 2, 7.5, 8, 1, 4.5, 1]])
        self.assertEqual([[row[name] for name in ("rank", "steps", "total_ms", "computing_ms")] for row in got["slow_ranks"]], [[1, 2, 7.5, 5], [0, 2, 6.5, 4]])
        # Beside steps with times, what has none is in no list.
        self.load(self.run_path, "mixed")
        load = self.server.number(f"SELECT max(load) FROM {DATABASE}.loads WHERE run = 'mixed' AND rank = 1")
        self.server.ask(f"INSERT INTO {DATABASE}.steps (run, rank, load, step, has_shares, computing_ms) VALUES ('mixed', 1, {load}, 9, 1, 5)")
        self.assertNotIn(9, [step["step"] for step in profctl_json("analyze", "--from", self.url("mixed"))["ranks"][1]["steps"]])
        self.assertEqual([step["step"] for step in profctl_json("analyze", "--from", self.url("mixed"), "--overview")["steps"]], [3])

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
        statements = 11  # four questions, the tables are there; then rows are on their way
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
        self.load(self.run_path, "stays")
        gate = Gate(self.server.http, 11, close=True)
        self.addCleanup(gate.stop)
        done = profctl("export", os.path.join(self.folder, "large"), "--to", self.url(port=gate.port), "--run", "gone", expect=6)
        self.assertIn(f"127.0.0.1:{gate.port}", done.stderr)
        self.assertEqual(self.counted("kernels", "gone"), 0)
        done = profctl("analyze", "--from", self.url("gone"), expect=4)
        self.assertIn("no run gone", done.stderr)
        port = free_ports(1)[0]
        done = profctl("export", self.run_path, "--to", self.url(port=port), "--run", "gone", expect=6)
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

    @needs_server
    def test_refusals_are_plain(self):
        wrong = profctl("export", self.run_path, "--to", self.url(password="not it"), "--run", "x", expect=3)
        self.assertIn("Wrong password for user loader", wrong.stderr)
        self.assertNotIn("not it", wrong.stderr)
        self.assertNotIn("DB::Exception", wrong.stderr)
        # From the environment, so that it is not on the command line.
        address = f"clickhouse://127.0.0.1:{self.server.http}/{DATABASE}"
        env = {**os.environ, "PROFCTL_CLICKHOUSE_USER": clickhouse_server.USER, "PROFCTL_CLICKHOUSE_PASSWORD": clickhouse_server.PASSWORD}
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
                self.assertIn(text, profctl(*arguments, expect=2).stderr)

    def test_tables_of_another_version(self):
        self.server.ask("CREATE DATABASE older")
        self.server.ask("CREATE TABLE older.loads (run String, rank Int32, load UInt64, who String) ENGINE = MergeTree PARTITION BY run ORDER BY run")
        done = profctl("export", self.run_path, "--to", self.server.url("older"), "--run", "x", expect=3)
        self.assertIn("table older.loads has no column device, ", done.stderr)
        self.assertEqual(self.server.number("SELECT count() FROM system.tables WHERE database = 'older'"), 1)

    def test_ranks_without_number_and_host(self):
        """Two of them do not replace each other, the same one does, wherever it lies."""
        paths = [os.path.join(self.folder, "nameless", name) for name in ("a", "b")]
        for number, path in enumerate(paths):
            make_nameless(path, number)
            self.load(path, "nameless")
        self.assertEqual(self.counted("kernels", "nameless"), 2 * 10)
        elsewhere = os.path.join(self.folder, "nameless", "elsewhere")
        shutil.copytree(paths[0], elsewhere)
        self.load(elsewhere, "nameless")
        self.load(paths[1], "nameless")
        self.assertEqual(self.counted("kernels", "nameless"), 2 * 10)
        self.assertEqual(len(profctl_json("analyze", "--from", self.url("nameless"), "--only", "overall")["ranks"]), 2)

    def test_devices_that_ran_nothing_are_no_ranks(self):
        """Where ranks have numbers: of files that are read together, and of a run that several nodes were loaded into."""
        ran, idle = (os.path.join(self.folder, "beside", name) for name in ("ran_ascend_pt", "idle_ascend_pt"))
        make_nameless(ran, 7)
        make_idle(idle)
        for paths, ranks in (((idle,), 1), ((self.run_path, ran, idle), 3)):
            run = f"beside{ranks}"
            for path in paths:
                self.load(path, run)
            self.assertEqual(self.server.number(f"SELECT uniqExact(who) FROM {DATABASE}.loads WHERE run = '{run}'"), len(paths) + (ranks == 3))
            self.assertEqual(len(profctl_json("analyze", *paths)["ranks"]), ranks)
            self.assertEqual(len(profctl_json("analyze", "--from", self.url(run))["ranks"]), ranks)
            self.assertEqual(profctl_json("analyze", "--from", self.url(run), "--overview")["overall"]["ranks"], ranks)

    def test_names_are_no_statements(self):
        name = "it's \\'; DROP TABLE x --"
        self.load(self.run_path, name)
        got = profctl_json("analyze", "--from", self.url(), "--run", name, "--only", "overall")
        self.assertEqual(len(got["ranks"]), 2)

    def dashboard(self):
        return read_json(REPO, "dashboards", "clickhouse", "profd-runs.json")

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

    def runs(self, *flags, database=DATABASE, **how):
        return {run["run"]: run for run in profctl_json("list", "--from", self.server.url(database), *flags, **how)["runs"]}

    def test_runs_are_listed_and_removed(self):
        database, name = "kept", "it's \\'; DROP TABLE x --"
        for run in ("new", name):
            profctl("export", self.run_path, "--to", self.server.url(database), "--run", run)
        # One of 100 days ago: the number of a load is its time.
        for table in ("loads", "totals"):
            columns = ["load - 8640000000000000" if column == "load" else column for column, in self.server.rows(
                f"SELECT name FROM system.columns WHERE database = '{database}' AND table = '{table}'") if column != "run"]
            self.server.ask(f"INSERT INTO {database}.{table} SELECT 'old', {', '.join(columns)} FROM {database}.{table} WHERE run = 'new'")
        runs = self.runs(database=database)
        self.assertEqual(list(runs), [name, "new", "old"])
        self.assertEqual((runs["new"]["ranks"], runs["new"]["complete"]), (2, True))
        self.assertEqual(runs["new"]["rows"], sum(self.server.number(f"SELECT count() FROM {database}.{table} WHERE run = 'new'") for table in self.tables(database)))
        listed = profctl("list", "--from", self.server.url(database)).stdout
        self.assertRegex(listed, r"new +complete +2 +\d+ ")
        self.assertEqual(list(self.runs("--older-than", "90", database=database)), ["old"])
        # By age, and by name.
        self.assertIn("removed old, ", profctl("rm", "--from", self.server.url(database), "--older-than", "90").stdout)
        self.assertEqual(profctl_json("rm", "--from", self.server.url(database), "--older-than", "90")["removed"], [])
        done = profctl_json("rm", "--from", self.server.url(database), name)
        self.assertEqual([run["run"] for run in done["removed"]], [name])
        for table in (*self.tables(database), "loads"):
            self.assertIn(self.server.rows(f"SELECT DISTINCT run FROM {database}.{table}"), ([["new"]], []), table)
        self.assertIn("no run old", profctl("rm", "--from", self.server.url(database), "old", expect=4).stderr)
        self.assertIn("no run old", profctl("analyze", "--from", self.server.url(database) + "/old", expect=4).stderr)
        assert_same(profctl_json("analyze", "--from", self.server.url(database) + "/new")["ranks"], profctl_json("analyze", self.run_path)["ranks"])
        # What a removal that was killed has left is listed, and can be removed.
        self.server.ask(f"ALTER TABLE {database}.loads DROP PARTITION 'new'")
        self.assertEqual(self.runs(database=database)["new"]["complete"], False)
        profctl("rm", "--from", self.server.url(database) + "/new")
        self.assertEqual(self.runs(database=database), {})
        for arguments, text in ((("rm", "--from", self.url()), "which runs?"), (("rm", "--from", self.url(), "--older-than", "0"), "--older-than"),
                                (("rm", "--older-than", "3", "x"), "--from"), (("list", "--from", self.url(), "--dumps"), "--dumps")):
            self.assertIn(text, profctl(*arguments, expect=2).stderr)

    def tables(self, database):
        return [name for name, in self.server.rows(f"SELECT name FROM system.tables WHERE database = '{database}' AND name != 'loads'")]

    @needs_server
    def test_a_user_who_may_only_read(self):
        self.load(self.run_path, "seen")
        viewer = f"clickhouse://viewer@127.0.0.1:{self.server.http}/{DATABASE}"
        assert_same(profctl_json("analyze", "--from", viewer + "/seen")["ranks"], profctl_json("analyze", self.run_path)["ranks"])
        self.assertIn("seen", profctl("list", "--from", viewer).stdout)
        self.assertIn(f"the user needs the right to ALTER the tables of {DATABASE}: ", profctl("rm", "--from", viewer, "seen", expect=3).stderr)
        self.assertGreater(self.counted("kernels", "seen"), 0)

    @needs_server
    def test_a_run_larger_than_the_server_lets_go(self):
        server = started(self, temp_folder(self), more="<max_partition_size_to_drop>1</max_partition_size_to_drop>")
        profctl("export", self.run_path, "--to", server.url(DATABASE), "--run", "large")
        done = profctl("rm", "--from", server.url(DATABASE), "large", expect=3)
        self.assertIn("max_partition_size_to_drop (50 GB", done.stderr)

    @needs_server
    def test_over_tls(self):
        folder = temp_folder(self)
        key, certificate = os.path.join(folder, "key.pem"), os.path.join(folder, "certificate.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
                        "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate], check=True, capture_output=True)
        port = free_ports(1)[0]
        server = started(self, folder, more=f"<https_port>{port}</https_port><openSSL><server><certificateFile>{certificate}</certificateFile>"
                                            f"<privateKeyFile>{key}</privateKeyFile><verificationMode>none</verificationMode></server></openSSL>")
        address = server.url(DATABASE, port=port, scheme="clickhouses", host="localhost")
        done = profctl("export", self.run_path, "--to", address, "--run", "tls", expect=3)
        self.assertIn("certificate", done.stderr)
        profctl("export", self.run_path, "--to", address, "--run", "tls", "--tls-ca", certificate)
        got = profctl_json("analyze", "--from", address + "/tls", "--tls-ca", certificate)
        assert_same(got["ranks"], profctl_json("analyze", self.run_path)["ranks"])


@needs_engine
class RecordedJob(ActivityCase):
    """A dump of profd."""

    def test_dump(self):
        job = self.train()
        job.attached(self.daemon, 2)
        session = self.daemon.ctl("start", "--job", job.job_id, "--task-time", "l1", "--training-trace", "on", "--provider", "mspti", "--collector", "hbm=20",
                                  "--duration", "1s")
        dump = self.daemon.until_state(session["session_id"], "done")["dump_path"]
        job.close()
        server = started(self, self.folder)
        profctl("export", dump, "--to", server.url(DATABASE), "--run", "job")
        want = profctl_json("analyze", dump)["ranks"]
        self.assertEqual(len(want), 2)
        self.assertTrue(want[0]["operators"] and want[0]["steps"] and want[0]["hardware"])
        assert_same(profctl_json("analyze", "--from", server.url(DATABASE) + "/job")["ranks"], want)
        facts = {name: value for name, value in server.rows(f"SELECT DISTINCT name, value FROM {DATABASE}.facts WHERE name LIKE 'manifest.%'")}
        self.assertEqual(facts["manifest.session"], session["session_id"])
        self.assertEqual(facts["manifest.option.task_time"], "l1")
        self.assertGreater(server.number(f"SELECT count() FROM {DATABASE}.slices WHERE layer = 'CANN'"), 0)
        # That it is still being written is no damage.
        running = os.path.join(self.folder, "running", os.path.basename(dump))
        shutil.copytree(dump, running)
        write_text(running + "/profd_manifest.json", json.dumps(read_json(running, "profd_manifest.json") | {"state": "running"}))
        done = profctl_json("export", running, "--to", server.url(DATABASE), "--run", "running")
        self.assertFalse(done["damaged"])
        self.assertEqual([each["what"] for each in done["problems"]], ["is still being written: what follows is missing"])
        # What is wrong with it is said, and stays with the run.
        damaged = os.path.join(self.folder, os.path.basename(dump))
        shutil.copytree(dump, damaged)
        cut = max((path for path in files_below(damaged) if "hbm.data" in path and not path.endswith(".done")), key=os.path.getsize)
        os.truncate(cut, os.path.getsize(cut) // 2)
        done = profctl("export", damaged, "--to", server.url(DATABASE), "--run", "damaged", expect=5)
        self.assertIn("hbm.data: damaged", done.stderr)
        done = profctl_json("export", damaged, "--to", server.url(DATABASE), "--run", "damaged", "--allow-damaged")
        self.assertTrue(done["damaged"])
        problems = profctl_json("analyze", damaged)["problems"]
        self.assertTrue(problems)
        for run, wrong in (("damaged", problems), ("job", [])):
            for how in ((), ("--overview",)):
                self.assertEqual(profctl_json("analyze", "--from", f"{server.url(DATABASE)}/{run}", *how)["problems"], wrong)
        self.assertIn("hbm.data: damaged", profctl("analyze", "--from", server.url(DATABASE) + "/damaged", "--overview").stderr)
        # Also where it is loaded already, and therefore not read again.
        again = ("export", damaged, "--to", server.url(DATABASE), "--run", "damaged", "--resume")
        done = profctl_json(*again, expect=5)
        self.assertEqual((done["skipped_sources"], done["ranks"], done["problems"]), (1, [], problems))
        self.assertIn("hbm.data: damaged", profctl(*again, expect=5).stderr)
        self.assertTrue(profctl_json(*again, "--allow-damaged")["damaged"])
        self.assertFalse(profctl_json("export", dump, "--to", server.url(DATABASE), "--run", "job", "--resume")["damaged"])


if __name__ == "__main__":
    main()
