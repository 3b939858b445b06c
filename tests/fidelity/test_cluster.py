"""Many ranks: what profctl says of a cluster, and cluster_analysis_output (analysis 1.9, 2.4), against a generator of its own and
the vendor's output beside the project."""

import json
import math
import os
import shutil
import sqlite3
import unittest

import run_tests
from advise_case import advise, found
from analysis_case import analyze
from cluster_case import STEP_COLUMNS, TRANSPORTS, ClusterCase, ClusterRanks
from profd_harness import SHARED_DATA
from text_files import read_dicts, read_json

STAGES = ((0, 1, 2, 3), (4, 5, 6, 7))
OUT = "cluster_analysis_output"


class Output(ClusterCase):
    @classmethod
    def setUpClass(cls):
        cls.made = ClusterRanks(18)

    def setUp(self):
        super().setUp()
        self.made.write(self.write, "run")
        self.ranks = os.path.join(self.folder, "run")
        self.got = analyze(self.ranks, "--cluster-out", self.folder)
        self.out = os.path.join(self.folder, OUT)

    def set_of(self, group):
        return "p2p" if self.made.groups[group][3] else str(self.made.groups[group][2])

    def check_steps(self, rows, column, step_of):
        """Rows of ranks, and of stages their column-wise maximum."""
        want = {}
        for (rank, step), us in self.made.steps.items():
            want["rank", str(rank), str(step)] = us
            stage = ("stage", str(STAGES[rank // 4]), str(step))
            want[stage] = [max(pair) for pair in zip(us, want.get(stage, us))]
        self.assertEqual(len(rows), len(want))
        for row in rows:
            key = row[column("Type")], row[column("Index")], step_of(row)
            for name, us in zip(STEP_COLUMNS, want[key]):
                if name == "Overlapped":  # of what is not overlapped and all communication
                    continue
                self.assertAlmostEqual(float(row[column(name)]), us, places=6, msg=(key, name))
            indexes = [row[column(name)] for name in ("DP Index", "PP Index", "TP Index")]
            rank = int(key[1]) if key[0] == "rank" else None
            self.assertEqual([str(value) for value in indexes], ["", "", ""] if rank is None and "" in indexes else ["None"] * 3 if rank is None
                             else [str(rank // 2 % 2), str(rank // 4), str(rank % 2)])

    def test_steps(self):
        rows = read_dicts(self.out, "cluster_step_trace_time.csv")
        self.check_steps(rows, lambda name: name, lambda row: row["Step"])
        order = [(row["Step"], row["Type"] == "stage", row["Index"]) for row in rows]
        self.assertEqual(order, sorted(order))

    def check_total(self, got, group, step, rank):
        infos = [by_rank[rank] for (g, s, _), by_rank in self.made.operations.items() if (g, s) == (group, step) and rank in by_rank]
        times = got["Communication Time Info"]
        for name in ("Elapse Time(ms)", "Transit Time(ms)", "Wait Time(ms)", "Synchronization Time(ms)", "Idle Time(ms)"):
            self.assert_close(times[name], sum(info["Communication Time Info"][name] for info in infos), name)
        for name in TRANSPORTS:
            of = [info["Communication Bandwidth Info"][name] for info in infos]
            mb, ms = (sum(each[field] for each in of) for field in ("Transit Size(MB)", "Transit Time(ms)"))
            total = got["Communication Bandwidth Info"][name]
            self.assert_close(total["Transit Size(MB)"], mb)
            self.assert_close(total["Transit Time(ms)"], ms)
            self.assert_close(total["Bandwidth(GB/s)"], round(mb / ms, 4) if ms else 0)
            self.assertEqual(sum(count for count, _ in total["Size Distribution"].values()),
                             sum(count for each in of for count, _ in each["Size Distribution"].values()))

    def test_communication(self):
        got = read_json(self.out, "cluster_communication.json")
        self.assertEqual(set(got), {self.set_of(group) for group in self.made.groups})
        seen = 0
        for (group, step, name), by_rank in self.made.operations.items():
            mine = got[self.set_of(group)][f"step{step}"][f"{name}@{group}"]
            self.assertEqual(mine, {str(rank): info for rank, info in by_rank.items()})
            seen += 1
        totals = 0
        for steps in got.values():
            for step, operations in steps.items():
                for key, by_rank in operations.items():
                    if key.startswith("Total Op Info@"):
                        totals += 1
                        for rank, info in by_rank.items():
                            self.check_total(info, key.split("@")[1], int(step[4:]), int(rank))
                    else:
                        seen -= 1
        self.assertEqual((seen, totals), (0, len(self.made.groups) * len(self.made.STEPS)))

    def global_links(self, key):
        group, _, _ = key
        ranks = self.made.groups[group][2]
        return {(ranks[source], ranks[destination]): link for links in self.made.links[key].values() for (source, destination), link in links.items()}

    def test_matrix(self):
        got = read_json(self.out, "cluster_communication_matrix.json")
        for key in self.made.links:
            group, step, name = key
            of_step = got[self.set_of(group)][f"step{step}"]
            want = {f"{source}-{destination}": link for (source, destination), link in self.global_links(key).items()}
            self.assertEqual(of_step[f"{name}@{group}"], want)
            if name.endswith("total"):
                total = of_step[f"Total Op Info@{group}"]
                self.assertEqual({pair: link["Transit Size(MB)"] for pair, link in total.items()}, {pair: link["Transit Size(MB)"] for pair, link in want.items()})

    def test_groups(self):
        got = read_json(self.out, "communication_group.json")
        self.assertEqual(got["p2p"], [list(stage) for stage in STAGES])
        self.assertEqual(sorted(map(tuple, got["collective"])), sorted(ranks for _, _, ranks, p2p in self.made.groups.values() if not p2p))
        self.assertEqual({each["group_name"]: (each["group_id"], each["pg_name"], tuple(each["rank_set"]), each["type"] == "p2p")
                          for each in got["comm_group_parallel_info"]}, self.made.groups)

    def test_tables(self):
        with sqlite3.connect(os.path.join(self.out, "cluster_analysis.db")) as database:
            columns = [row[1] for row in database.execute("PRAGMA table_info(ClusterStepTraceTime)")]
            names = {"Type": "type", "Index": "index", "Communication(Not Overlapped)": "communication_not_overlapped",
                     "Communication(Not Overlapped and Exclude Receive)": "communication_not_overlapped_and_exclude_receive"}
            column = lambda name: columns.index(names.get(name, name.lower().replace(" ", "_")))
            self.check_steps(database.execute("SELECT * FROM ClusterStepTraceTime").fetchall(), column, lambda row: row[0])
            times = {row[:4]: row[4:] for row in database.execute("SELECT * FROM ClusterCommunicationTime WHERE hccl_op_name != 'Total Op Info'")}
            sizes = {}
            for row in database.execute("SELECT * FROM ClusterCommunicationBandwidth WHERE hccl_op_name != 'Total Op Info'"):
                sizes.setdefault(row[:5], []).append(row[5:])
            count = 0
            for (group, step, name), by_rank in self.made.operations.items():
                for rank, info in by_rank.items():
                    count += 1
                    of = info["Communication Time Info"]
                    want = [of[field] for field in ("Start Timestamp(us)", "Elapse Time(ms)", "Transit Time(ms)", "Wait Time(ms)", "Synchronization Time(ms)",
                                                    "Idle Time(ms)", "Synchronization Time Ratio", "Wait Time Ratio")]
                    self.assertEqual(list(times[f"step{step}", rank, name, group]), want)
                    for kind, each in info["Communication Bandwidth Info"].items():
                        rows = [(each["Transit Size(MB)"], each["Transit Time(ms)"], each["Bandwidth(GB/s)"], each["Large Packet Ratio"], float(size), *of_size)
                                for size, of_size in each["Size Distribution"].items()]
                        if not rows and each["Transit Time(ms)"]:
                            rows = [(each["Transit Size(MB)"], each["Transit Time(ms)"], each["Bandwidth(GB/s)"], 0, 0, 0, 0)]
                        self.assertEqual(sorted(sizes.get((f"step{step}", rank, name, group, kind), [])), sorted(rows))
            self.assertEqual(len(times), count)
            links = {tuple(row[:5]): row[5:] for row in database.execute("SELECT * FROM ClusterCommunicationMatrix WHERE hccl_op_name != 'Total Op Info'")}
            for key in self.made.links:
                group, step, name = key
                for (source, destination), link in self.global_links(key).items():
                    kind, op, mb, ms, speed = links.pop((f"step{step}", name, group, source, destination))
                    self.assertEqual((kind, op, mb, ms), tuple(link[field] for field in ("Transport Type", "Op Name", "Transit Size(MB)", "Transit Time(ms)")))
                    self.assert_close(speed, mb / ms)
            self.assertEqual(links, {})
            self.assertEqual(set(database.execute("SELECT * FROM HostInfo")), {("node0", "node0"), ("node1", "node1")})
            self.assertEqual([row[2] for row in database.execute("SELECT * FROM RankDeviceMap ORDER BY rankId")], ["node0"] * 4 + ["node1"] * 4)
            self.assertEqual({row[2]: (row[3], row[4], row[1], row[0] == "p2p") for row in database.execute("SELECT * FROM CommunicationGroupMapping")},
                             {name: (identity, label, f"({ranks[0]},{ranks[1]})", p2p) for name, (identity, label, ranks, p2p) in self.made.groups.items()})

    def compare(self, got, want, fields):
        self.assertEqual([rank["rank"] for rank in got["ranks"]], [rank["rank"] for rank in want["ranks"]])
        for mine, theirs in zip(got["ranks"], want["ranks"]):
            for field in fields:
                self.assert_alike(mine[field], theirs[field], (mine["rank"], field))

    def assert_alike(self, got, want, where):
        if isinstance(want, float) or isinstance(got, float):
            self.assertTrue(math.isclose(got, want, rel_tol=1e-9, abs_tol=1e-9), (where, got, want))
        elif isinstance(want, dict):
            self.assertEqual(set(got), set(want), where)
            for key, value in want.items():
                self.assert_alike(got[key], value, (*where, key))
        elif isinstance(want, list):
            self.assertEqual(len(got), len(want), where)
            for i, (mine, theirs) in enumerate(zip(got, want)):
                self.assert_alike(mine, theirs, (*where, i))
        else:
            self.assertEqual(got, want, where)

    def test_read_back(self):
        """From the files, and from the database alone, the same ranks as from their own directories."""
        tables = os.path.join(self.folder, "tables")
        os.makedirs(tables)
        shutil.copy(os.path.join(self.out, "cluster_analysis.db"), tables)
        for back in (analyze(self.out), analyze(tables), analyze(os.path.join(tables, "cluster_analysis.db"))):
            self.assertEqual(back["problems"], [])
            self.compare(back, self.got, ("overall", "steps"))
            for mine, theirs in zip(back["ranks"], self.got["ranks"]):
                key = lambda op: (op["group"], op["name"])
                self.assert_alike(sorted(mine["communication"], key=key), sorted(theirs["communication"], key=key), (mine["rank"],))
            cluster, want = back["cluster"], self.got["cluster"]
            for field in ("stages", "steps", "waits", "slow_operations", "pairs", "experts"):
                if back["ranks"][0]["host"] is None:  # the files have no names of nodes
                    strip = lambda rows: [{name: value for name, value in row.items() if not name.endswith("host")} for row in rows]
                else:
                    strip = lambda rows: rows
                self.assert_alike(strip(cluster[field]), strip(want[field]), (field,))
            self.assertEqual([(each["dp"], each["pp"], each["tp"], each["stage"]) for each in cluster["rank_times"]],
                             [(each["dp"], each["pp"], each["tp"], each["stage"]) for each in want["rank_times"]])

    def test_names_of_nodes(self):
        self.assertEqual(self.got["cluster"]["hosts"], [{"host": "node0", "ranks": [0, 1, 2, 3]}, {"host": "node1", "ranks": [4, 5, 6, 7]}])
        self.assertEqual([rank["host"] for rank in self.got["ranks"]], ["node0"] * 4 + ["node1"] * 4)
        self.assertRegex(found(self.ranks)["slow_rank"]["evidence"], r"rank \d on node[01]")

    def test_nothing_is_replaced(self):
        error = analyze(self.ranks, "--cluster-out", self.folder, code=3)["error"]["message"]
        self.assertIn("--force", error)
        again = analyze(self.ranks, "--cluster-out", self.folder, "--force", "--only", "cluster")
        self.assertEqual(again["cluster_out"], self.out)
        self.assertEqual(sorted(os.listdir(self.out)), ["cluster_analysis.db", "cluster_communication.json", "cluster_communication_matrix.json",
                                                        "cluster_step_trace_time.csv", "communication_group.json"])


class Rules(ClusterCase):
    """Each rule on both sides of its limit."""

    def test_waits_between_ranks(self):
        # Clocks of nodes differ: who came last is the one that spent the least time in the operation.
        run = self.operations("a", {"hcom_allReduce__1_0_1@g1": {0: (5, {}), 1: (2, {}), 2: (4, {})}, "hcom_send__1_0_1@p": {0: (1, {}), 3: (9, {})},
                                    "hcom_receive__1_1_1@p": {0: (7, {})}, "hcom_send__1_1_1@p": {3: (3, {})}})
        cluster = analyze(run)["cluster"]
        waits = {(each["rank"], each["for_rank"]): each["wait_ms"] for each in cluster["waits"]}
        self.assertEqual(waits, {(0, 1): 3, (2, 1): 2, (3, 0): 8, (0, 3): 4})
        times = {each["rank"]: (each["others_wait_ms"], each["waits_ms"], each["last_of"]) for each in cluster["rank_times"]}
        self.assertEqual(times, {0: (8, 7, 1), 1: (2.5, 0, 1), 2: (0, 2, 0), 3: (4, 8, 1)})

    def test_ranks_without_times_of_steps(self):
        """They are missing beside the others: what lacks them and where they are is a problem."""
        run = self.operations("a", {"hcom_allReduce__1_0_1@g": {rank: (1, {}) for rank in range(3)}})
        out = os.path.join(run, "node0_1001_20260101000000000_ascend_pt", "ASCEND_PROFILER_OUTPUT")
        os.remove(os.path.join(out, "step_trace_time.csv"))
        missing = lambda got: [problem for problem in got["problems"] if "whose times are missing" in problem["what"]]
        self.assertEqual(missing(analyze(run)), [], "one step is all that was recorded")
        with open(os.path.join(out, "communication.json"), "r+", encoding="utf-8") as file:
            [step] = json.load(file).values()
            file.seek(0)
            json.dump({"step1": step, "step2": step}, file)
        [problem] = missing(analyze(run))
        self.assertEqual(problem["where"], out)
        self.assertTrue(problem["what"].startswith("rank 1 on node0 communicated in several steps whose times are missing"), problem)
        self.assertIn("step_trace_time.csv", problem["what"])

    def test_wait_for_rank(self):
        run = lambda name, ms: self.operations(name, {"hcom_allReduce__1_0_1@g1": {0: (1 + ms, {}), 1: (1, {}), 2: (1 + ms, {})}})
        got = self.assert_limit("wait_for_rank", run("a", 4.9), run("b", 5), "high", cost=5, rows=3)  # of 100 ms
        self.assertEqual(got["table"]["rows"][0][:3], [1, "node0", 5])
        self.assertIn("rank 1 on node0", got["title"])
        # Where each rank is waited for as long as the others, it is none's fault.
        even = {f"hcom_allReduce__1_{i}_1@g1": {rank: (1 if rank == i else 10, {}) for rank in range(3)} for i in range(3)}
        self.assertNotIn("wait_for_rank", found(self.operations("c", even)))

    def test_votes(self):
        # Dixon's r10 of four values at 99.5 %: 0.920.
        run = lambda name, low: self.operations(name, {"hcom_allReduce__1_0_1@g1": {0: (100, {}), 1: (99, {}), 2: (low, {}), 3: (98, {})}})
        votes = lambda run: {each["rank"]: each["votes"] for each in analyze(run)["cluster"]["rank_times"]}
        below, above = run("a", 76), run("b", 74)  # (98 - x) / (100 - x): 0.917, 0.923
        self.assertEqual((votes(below), votes(above)), ({0: 0, 1: 0, 2: 0, 3: 0}, {0: 0, 1: 0, 2: 1, 3: 0}))
        self.assertNotIn("far behind", found(below)["slow_rank"]["evidence"])
        self.assertIn("At 1 of 1 collective rank 2 on node0 arrives far behind all others", found(above)["slow_rank"]["evidence"])

    def test_slow_pairs(self):
        def run(name, slow, others):
            """Twenty links, of which one has another bandwidth."""
            def made(rank):
                pair = lambda other: {"Transport Type": "HCCS", "Transit Size(MB)": slow if (rank, other) == (2, 0) else others[other % 2], "Transit Time(ms)": 1}
                return json.dumps({"step1": {"collective": {"a-total@g": {f"{rank}-{other}": pair(other) for other in range(5) if other != rank} | {
                    f"{rank}-{rank}": {"Transport Type": "LOCAL", "Transit Size(MB)": 1, "Transit Time(ms)": 0.001}}}}})
            return self.operations(name, {"hcom_allReduce__1_0_1@g": {rank: (1, {"SDMA": (1, 1)}) for rank in range(5)}}, communication_matrix__json=made)
        # 11 links of 19 GB/s, 8 of 17 and one of x: x = 14.57 is 3 deviations below the mean.
        def deviations(x):
            speeds = [x] + [19] * (11 if x else 0) + [17] * 8
            mean = sum(speeds) / 20
            return (x - mean) / math.sqrt(sum((s - mean) ** 2 for s in speeds) / 20)
        below, above = run("a", 14.8, (19, 17)), run("b", 13.0, (19, 17))
        self.assertGreater(deviations(14.8), -3)
        self.assertLess(deviations(13.0), -3)
        self.assertNotIn("bandwidth_imbalance", found(below))
        self.assertIn("HCCS of rank 2 to 0: 13.000 GB/s", found(above)["bandwidth_imbalance"]["evidence"])
        first = analyze(above)["cluster"]["pairs"][0]
        self.assertEqual((first["src"], first["dst"], first["bandwidth_gb_s"]), (2, 0, 13))
        self.assert_close(first["score"], deviations(13.0))

    def test_slow_operations(self):
        def run(name, last):
            ops = {f"hcom_allReduce__1_{i}_1@g": {rank: (ms + 5 * rank, {"SDMA": (10, 1)}) for rank in range(2)} for i, ms in enumerate([1, 2] * 6 + [last])}
            ops |= {f"hcom_send__1_{i}_1@p": {0: (ms, {"SDMA": (10, 1)})} for i, ms in enumerate([1] * 12 + [90])}
            return analyze(self.operations(name, ops))["cluster"]["slow_operations"]
        spread = lambda last: ([1, 2] * 6 + [last], sum([1, 2] * 6 + [last]) / 13)
        score = lambda last: (last - spread(last)[1]) / math.sqrt(sum((x - spread(last)[1]) ** 2 for x in spread(last)[0]) / 13)
        self.assertLess(score(4.2), 3)
        self.assertGreater(score(4.8), 3)
        self.assertEqual(run("a", 4.2), [])
        [slow] = run("b", 4.8)
        self.assertEqual((slow["operation"], slow["transit_ms"], slow["size_mb"], slow["ranks"]), ("hcom_allReduce__1_12_1", 4.8, 10, 2))
        self.assert_close(slow["score"], score(4.8))
        self.assert_close(slow["offset_ratio"], score(4.8))

    def test_expert_imbalance(self):
        run = lambda name, more, op="alltoallv": self.operations(name, {f"hcom_{op}__1_0_1@ep": {rank: (10 + (rank == 1), {"SDMA": (mb, 1)}) for rank, mb in enumerate((100, more, 100))}})
        # (x - mean) / mean = 0.2 at x = 133.33
        got = self.assert_limit("expert_imbalance", run("a", 133), run("b", 134), "low", rows=3)
        self.assertEqual(got["table"]["rows"][0][:4], ["ep", 1, "node0", 134])
        self.assert_close(got["cost_ms"], 11 - 31 / 3)
        self.assertNotIn("expert_imbalance", found(run("c", 300, op="allReduce")))

    def test_stages(self):
        """Collectives of ranks that send to each other join no stages."""
        ops = {"hcom_allReduce__1_0_1@tp0": {0: (1, {}), 1: (1, {})}, "hcom_allReduce__2_0_1@tp1": {2: (1, {}), 3: (1, {})},
               "hcom_allReduce__3_0_1@world": {rank: (1, {}) for rank in range(4)}, "hcom_send__4_0_1@p0": {0: (1, {})}, "hcom_receive__4_0_1@p0": {2: (1, {})}}
        cluster = analyze(self.operations("a", ops))["cluster"]
        self.assertEqual([stage["ranks"] for stage in cluster["stages"]], [[0, 1], [2, 3]])
        self.assertEqual({group["group"]: group["type"] for group in cluster["groups"]}, {"tp0": "collective", "tp1": "collective", "world": "collective", "p0": "p2p"})
        without = {key: value for key, value in ops.items() if "p0" not in key}
        self.assertEqual(analyze(self.operations("b", without))["cluster"]["stages"], [])

    def test_one_rank_is_not_a_cluster(self):
        run = self.operations("a", {"hcom_allReduce__1_0_1@g": {0: (1, {})}})
        self.assertIsNone(analyze(run)["cluster"])

    def test_more_ranks_than_the_text_has(self):
        run = self.operations("a", {"hcom_allReduce__1_0_1@g": {rank: (1 + rank, {}) for rank in range(70)}})
        self.assertEqual(len(analyze(run)["ranks"]), 70)
        advise(run, "-o", os.path.join(self.folder, "out"))  # the page shows 64 in full


class Untrusted(ClusterCase):
    def test_files(self):
        self.write("a", OUT, "cluster_step_trace_time.csv", text="Step,Type,Index,Computing\n1,rank,0,1\n")
        for name, text in (("communication_group.json", '{"comm_group_parallel_info": [1, {"rank_set": {"a": -1}, "group_name": 4}, {}]}'),
                           ("cluster_communication.json", '{"p2p": {"step1": {"a@b": {"99999999999": {}, "0": {"Communication Time Info": {"Elapse Time(ms)": "x"}}}}}}'),
                           ("cluster_communication_matrix.json", '{"(0)": {"step1": {"a-total@b": {"0-x": {}, "-": {}, "0": 4}}}}')):
            self.write("a", OUT, name, text=text)
        got = analyze(self.folder)
        self.assertIn("1 line makes no sense", got["problems"][0]["what"])

    def test_database(self):
        path = self.write("a", "cluster_analysis.db", text="")
        with sqlite3.connect(path) as database:
            database.executescript("""CREATE TABLE ClusterStepTraceTime(step, type, "index", computing, communication_not_overlapped, overlapped, communication, free, stage, bubble,
                communication_not_overlapped_and_exclude_receive, preparing, dp_index, pp_index, tp_index);
                INSERT INTO ClusterStepTraceTime VALUES('x', 'rank', '-3', 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1), (NULL, 'rank', '2', 'a', NULL, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1);
                CREATE TABLE CommunicationGroupMapping(type, rank_set, group_name, group_id, pg_name);
                INSERT INTO CommunicationGroupMapping VALUES(1, '(2,99999999999999,x', NULL, NULL, NULL);
                CREATE TABLE ClusterCommunicationMatrix(step)""")
        got = analyze(self.folder)
        self.assertEqual([rank["rank"] for rank in got["ranks"]], [2])
        found = "\n".join(problem["what"] for problem in got["problems"])
        self.assertIn("ClusterStepTraceTime: 1 row makes no sense", found)
        self.assertIn("no such column", found)

    def test_database_without_indexes_of_parallelism(self):
        path = self.write("a", "cluster_analysis.db", text="")
        with sqlite3.connect(path) as database:
            database.executescript("""CREATE TABLE ClusterStepTraceTime(step, type, "index", computing, communication_not_overlapped, overlapped, communication, free, stage, bubble,
                communication_not_overlapped_and_exclude_receive, preparing);
                INSERT INTO ClusterStepTraceTime VALUES('1', 'rank', '0', 5000, 2000, 0, 2000, 1000, 8000, 0, 2000, 5);""")
        got = analyze(self.folder)
        self.assertEqual(got["problems"], [])
        [step] = got["ranks"][0]["steps"]
        self.assertEqual([step[name] for name in ("computing_ms", "uncovered_communication_ms", "free_ms")], [5, 2, 1])


@unittest.skipUnless(os.path.isdir(SHARED_DATA), "the data with known answers is not there")
class VendorsOutput(ClusterCase):
    """What the vendor's cluster analysis made of two real ranks."""

    def assert_same(self, got, want, where=()):
        if isinstance(want, dict):
            self.assertEqual(set(got), set(want), where)
            for key, value in want.items():
                self.assert_same(got[key], value, (*where, key))
        elif isinstance(want, (int, float)) and not isinstance(want, bool):
            self.assertTrue(math.isclose(got, want, rel_tol=1e-9, abs_tol=1e-9), (where, got, want))
        else:
            self.assertEqual(got, want, where)

    def test_text(self):
        case = os.path.join(SHARED_DATA, "pytorch", "pt_text_level1")
        for rank in ("rank0_ascend_pt", "rank1_ascend_pt"):
            shutil.copytree(os.path.join(case, rank), os.path.join(self.folder, "run", rank))
        analyze(os.path.join(self.folder, "run"), "--only", "cluster", "--cluster-out", self.folder)
        want = os.path.join(case, "peer_output", "cluster")
        for mine, theirs in zip(read_dicts(self.folder, OUT, "cluster_step_trace_time.csv"), read_dicts(want, "cluster_step_trace_time.csv"), strict=True):
            self.assertEqual(list(mine), list(theirs))
            for column, value in theirs.items():
                self.assertTrue(mine[column] == value or math.isclose(float(mine[column]), float(value), abs_tol=1e-6), (column, mine[column], value))
        for name in ("cluster_communication.json", "cluster_communication_matrix.json", "communication_group.json"):
            self.assert_same(read_json(self.folder, OUT, name), read_json(want, name), (name,))

    def test_operations_before_steps(self):
        """Releases differ in which of the two keys is the outer one."""
        made = os.path.join(SHARED_DATA, "pytorch", "pt_text_level1", "peer_output", "cluster")
        shutil.copytree(made, os.path.join(self.folder, "a", OUT))
        shutil.copytree(made, os.path.join(self.folder, "b", OUT))
        groups = read_json(made, "cluster_communication.json")
        turned = {group: {} for group in groups}
        for group, steps in groups.items():
            for step, operations in steps.items():
                for name, ranks in operations.items():
                    turned[group].setdefault(name, {})[step] = ranks
        self.write("b", OUT, "cluster_communication.json", text=json.dumps(turned))
        a, b = ([rank["communication"] for rank in analyze(os.path.join(self.folder, name))["ranks"]] for name in "ab")
        self.assertTrue(a[0])
        self.assertEqual(b, a)

    def test_database(self):
        case = os.path.join(SHARED_DATA, "pytorch", "pt_db_level1")
        for rank in ("rank0_ascend_pt", "rank1_ascend_pt"):
            shutil.copytree(os.path.join(case, rank), os.path.join(self.folder, "run", rank))
        analyze(os.path.join(self.folder, "run"), "--only", "cluster", "--cluster-out", self.folder)
        def tables(path):
            with sqlite3.connect(path) as database:
                read = lambda sql: [tuple(round(value, 7) if isinstance(value, float) else value for value in row) for row in database.execute(sql)]
                return {"steps": read('SELECT step, type, "index", computing, communication_not_overlapped, overlapped + 0.0, communication, free, stage, bubble + 0.0, '
                                      "communication_not_overlapped_and_exclude_receive, preparing FROM ClusterStepTraceTime ORDER BY 3"),
                        # The ratios of single operations are 0 in the vendor's.
                        "times": read("SELECT step, rank_id, hccl_op_name, group_name, elapsed_time, transit_time, wait_time, synchronization_time, idle_time, "
                                      "round(start_timestamp, 3) FROM ClusterCommunicationTime ORDER BY 2, 3"),
                        "totals": read("SELECT rank_id, synchronization_time_ratio, wait_time_ratio FROM ClusterCommunicationTime WHERE hccl_op_name LIKE 'Total%' ORDER BY 1"),
                        "bandwidth": read("SELECT * FROM ClusterCommunicationBandwidth ORDER BY rank_id, hccl_op_name, band_type, package_size"),
                        "links": read("SELECT step, hccl_op_name, group_name, CAST(src_rank AS INTEGER), CAST(dst_rank AS INTEGER), transport_type, op_name, "
                                      "round(transit_size, 6), round(transit_time, 6), round(bandwidth, 3) FROM ClusterCommunicationMatrix ORDER BY 2, 4, 5"),
                        "groups": read("SELECT * FROM CommunicationGroupMapping"), "hosts": read("SELECT * FROM HostInfo"),
                        "map": read("SELECT rankId, deviceId, hostUid FROM RankDeviceMap ORDER BY 1"),
                        "paths": [os.path.basename(path) for path, in read("SELECT profilePath FROM RankDeviceMap ORDER BY rankId")]}
        mine, theirs = (tables(path) for path in (os.path.join(self.folder, OUT, "cluster_analysis.db"), os.path.join(case, "peer_output", "cluster", "cluster_analysis.db")))
        for name, want in theirs.items():
            self.assertEqual(mine[name], want, name)

    def test_made(self):
        """Of ranks that are alike nothing is slow; of one that computes longer, and of slow links, the right one."""
        for case, slow in (("cluster_even", None), ("cluster_slow_compute", 2), ("cluster_slow_link", None)):
            got = analyze(os.path.join(SHARED_DATA, "made", case))["cluster"]
            most = {step["computing_ms"]["max_rank"] for step in got["steps"] if step["computing_ms"]["max"] > step["computing_ms"]["min"]}
            self.assertEqual(most, set() if slow is None else {slow}, case)
            self.assertEqual([sum(each["votes"] for each in got["rank_times"]), got["slow_operations"]], [0, []], case)

    def test_mindinsight(self):
        """What MindInsight's cluster analysis made of four ranks: two stages, of which the second computes longer."""
        case = os.path.join(SHARED_DATA, "mindinsight", "cluster_propose")
        got = analyze(case, "--cluster-out", self.folder)
        rows = {(row["Index"], row["Step"]): row for row in read_dicts(self.folder, OUT, "cluster_step_trace_time.csv")}
        for rank in got["ranks"]:
            want = read_dicts(case, f"ascend_cluster_analyse_pipeline-parallel_2_4_{rank['rank']}.csv")[:-1]  # the last is the average
            self.assertEqual(len(rank["steps"]), len(want))
            for step, of in zip(rank["steps"], want):
                row = rows[str(rank["rank"]), str(step["step"])]
                for field, column in (("computation_time", "Computing"), ("communication_alone_time", "Communication(Not Overlapped)"), ("stage_time", "Stage"),
                                      ("receive_alone_time", "Bubble"), ("collective_communication_alone_time", "Communication(Not Overlapped and Exclude Receive)")):
                    self.assertAlmostEqual(float(row[column]) / 1000, float(of[field]), places=4)
        self.assertIn("Computing differs by", found(case)["slow_rank"]["evidence"])

    def test_insight(self):
        """The output that MindStudio Insight's tests read: sixteen ranks, two stages."""
        got = analyze(os.path.join(SHARED_DATA, "insight", "insight_server", OUT))
        self.assertEqual(got["problems"], [])
        self.assertEqual(len(got["ranks"]), 16)


if __name__ == "__main__":
    run_tests.main()
