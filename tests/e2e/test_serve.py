#!/usr/bin/env python3
"""profctl serve: the page over runs below folders and on the daemon, in Chromium; MindInsight's REST calls against the
known answers of its own tests; who may ask."""

import contextlib
import gzip
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest
import urllib.error
import urllib.request

import web_driver
from profd_harness import PROFCTL, SHARED_DATA, Daemon, eventually, main, profctl, temp_folder
from test_report import make_pipeline, make_rank
from toml_files import scenario_text

REST = "v1/mindinsight/profile/"


class Server:
    def __init__(self, *args, options=()):
        self.process = subprocess.Popen([PROFCTL, *options, "serve", "--json", *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(self.process.communicate()[1])
        self.reported = json.loads(line)
        self.base, _, query = self.reported["url"].partition("?")
        self.token = query.removeprefix("token=")

    def request(self, path, body=None, **headers):
        """Status, headers and text."""
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.token:
            headers.setdefault("Authorization", "Bearer " + self.token)
        asked = urllib.request.Request(self.base + path, data=None if body is None else json.dumps(body).encode(), headers=headers)
        try:
            with urllib.request.urlopen(asked, timeout=60) as answer:
                text = answer.read()
                return answer.status, answer.headers, gzip.decompress(text) if answer.headers["Content-Encoding"] == "gzip" else text
        except urllib.error.HTTPError as error:
            return error.code, error.headers, error.read()

    def get(self, path, body=None):
        status, _, text = self.request(path, body)
        if status != 200:
            raise AssertionError(f"{path}: {status} {text}")
        return json.loads(text)

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate(timeout=30)
        return self.process.returncode, out, err


@contextlib.contextmanager
def serving(*args, options=()):
    server = Server(*args, options=options)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.stop()


class Serve(unittest.TestCase):
    def setUp(self):
        self.folder = temp_folder(self)
        for rank in (0, 1):
            make_rank(os.path.join(self.folder, "job"), rank, kernels=100)
        make_pipeline(os.path.join(self.folder, "minddata"))

    def here(self, *args):
        """Of this folder only, on any free port."""
        return serving(self.folder, "--no-daemon", "--listen", "127.0.0.1:0", *args)

    def test_runs_and_their_data(self):
        with self.here() as server:
            runs = {run["name"]: run for run in server.get("api/runs")["runs"]}
            self.assertEqual({name: run["kind"] for name, run in runs.items()},
                             {"r0_ascend_pt": "profiler output", "r1_ascend_pt": "profiler output", "job": "ranks", "minddata": "MindSpore logs"})
            self.assertEqual(server.reported["runs"], 4)
            self.assertEqual(server.get("api/runs")["folders"], [os.path.abspath(self.folder)])
            data = server.get("api/run/" + runs["job"]["id"])
            want = json.loads(profctl("analyze", "--json", os.path.join(self.folder, "job")).stdout)
            self.assertEqual([rank["overall"] for rank in data["ranks"]], [rank["overall"] for rank in want["ranks"]])
            self.assertEqual(len(data["ranks"]), 2)
            compared = server.get(f"api/run/{runs['r1_ascend_pt']['id']}?baseline={runs['r0_ascend_pt']['id']}")["compare"]
            self.assertEqual(compared["baseline"], "r0_ascend_pt")
            code, _, err = server.stop()
            self.assertEqual((code, err), (0, ""))

    def test_a_run_that_changes_and_one_that_is_removed(self):
        with self.here() as server:
            [run] = [run for run in server.get("api/runs")["runs"] if run["name"] == "r0_ascend_pt"]
            before = server.get("api/run/" + run["id"])["ranks"][0]["timeline"]["executions"]
            with open(os.path.join(self.folder, "job", "r0_ascend_pt", "ASCEND_PROFILER_OUTPUT", "kernel_details.csv"), "a", encoding="utf-8") as file:
                file.write('late,Late,AI_CORE,1736408883900000,5,0,"",0,0\n')
            self.assertEqual(server.get("api/run/" + run["id"])["ranks"][0]["timeline"]["executions"], before + 1)
            make_rank(os.path.join(self.folder, "later"), 5, kernels=10)
            self.assertIn("r5_ascend_pt", [run["name"] for run in server.get("api/runs")["runs"]])
            shutil.rmtree(os.path.join(self.folder, "job"))
            status, _, text = server.request("api/run/" + run["id"])
            self.assertGreaterEqual(status, 400)
            self.assertIn("message", json.loads(text)["error"])
            self.assertEqual(server.request("api/run/" + run["id"][::-1])[0], 404)
            for path in ("api/run/..%2f..%2fetc%2fpasswd", "api/run//etc/passwd", "api/run/", "..%2f", "page.html"):
                self.assertEqual(server.request(path)[0], 404, path)

    def test_allowed_callers(self):
        with self.here() as server:
            for headers in ({"Authorization": "Bearer " + "0" * 32}, {"Authorization": "Basic " + server.token}, {"Cookie": "profd_1=" + server.token},
                            {"Sec_Fetch_Site": "cross-site"}, {"Sec_Fetch_Site": "same-site"}):
                with self.subTest(headers=headers):
                    self.assertEqual(server.request("api/runs", **{"Authorization": "", **headers} if "Cookie" in headers else headers)[0], 403)
            status, _, text = server.request("api/runs", Authorization="")
            self.assertEqual((status, json.loads(text)["error"]["code"]), (403, "permission_denied"))
            self.assertEqual(server.request("?token=wrong", Authorization="")[0], 403)
            self.assertEqual(server.request("", Authorization="")[0], 403)
            status, headers, _ = server.request("", Cookie=f"a=b; profd_{server.base.split(':')[2].strip('/')}={server.token}", Authorization="")
            self.assertEqual(status, 200)
            self.assertEqual(headers["Cache-Control"], "no-store")
            self.assertEqual(headers["X-Frame-Options"], "DENY")
            asked = urllib.request.Request(server.base + "api/runs", method="DELETE", headers={"Authorization": "Bearer " + server.token})
            with self.assertRaises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(asked, timeout=30)
            self.assertEqual(refused.exception.code, 405)
            refused.exception.close()
        with self.here("--no-token") as server:
            self.assertEqual(server.token, "")
            self.assertEqual(server.request("api/runs")[0], 200)
            self.assertEqual(server.request("api/runs", Host="evil.example:80")[0], 403)
            self.assertEqual(server.request("api/runs", Sec_Fetch_Site="cross-site")[0], 403)

    def test_wrong_arguments(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            for args, code, text in (
                    ((self.folder, "--listen", "somewhere"), 2, "an IP address and a port"),
                    ((self.folder, "--listen", "somewhere:80"), 2, "not an IP address"),
                    ((self.folder, "--listen", "0.0.0.0:0", "--no-token"), 2, "loopback"),
                    ((self.folder, "--slices", "0"), 2, "--slices"),
                    ((self.folder, "--listen", f"127.0.0.1:{taken.getsockname()[1]}"), 3, "Address already in use"),
                    ((os.path.join(self.folder, "none"),), 4, "none"),
                    ((__file__,), 3, "not a directory")):
                with self.subTest(args=args):
                    done = subprocess.run([PROFCTL, "serve", "--no-daemon", *args], capture_output=True, text=True, check=False, timeout=30)
                    self.assertIn(text, done.stderr)
                    self.assertEqual(done.returncode, code)

    def test_dumps_of_the_daemon(self):
        with Daemon(scenario_text=scenario_text(devices=1)) as d:
            options = ("--socket", d.socket)
            session = json.loads(d.run("start", "--sys-hardware-mem-freq", "50", "--duration", "1s").stdout)["session_id"]
            done = d.until_state(session, "done", "failed")
            self.assertEqual(done["state"], "done")
            with tempfile.TemporaryDirectory() as empty, serving(empty, "--listen", "127.0.0.1:0", options=options) as server:
                [run] = server.get("api/runs")["runs"]
                self.assertEqual((run["kind"], run["path"]), ("dump", d.dump_root))
                self.assertTrue(server.get("api/run/" + run["id"])["ranks"][0]["hardware"])
        empty = temp_folder(self)
        with serving(empty, "--listen", "127.0.0.1:0", options=("--socket", os.path.join(empty, "none.sock"))) as server:
            self.assertEqual(server.get("api/runs")["runs"], [])
            self.assertIn("only folders are served; no daemon answers: profd cannot be reached", server.stop()[2])

    def test_the_page(self):
        web_driver.require()
        with self.here() as server, web_driver.Browser(1400, 900) as browser:
            text = lambda: browser.run("return document.querySelector('main').innerText")
            browser.open(server.reported["url"])
            eventually(lambda: "minddata" in text(), what="the runs are listed")
            self.assertNotIn(server.token, browser.run("return location.href"))
            self.assertNotIn("undefined", text())
            shots = os.environ.get("PROFD_SCREENSHOTS")
            if shots:
                browser.screenshot(os.path.join(shots, "runs.png"))
            browser.run("[...document.querySelectorAll('td a')].find((a) => a.innerText === 'r0_ascend_pt').click()")
            eventually(lambda: "Computing" in text(), what="the overview of the run")
            self.assertEqual(browser.run("return document.title"), "r0_ascend_pt - profd")
            data = server.get("api/run/" + next(r["id"] for r in server.get("api/runs")["runs"] if r["name"] == "r0_ascend_pt"))
            self.assertIn(f"{data['ranks'][0]['overall']['computing_ms']:.3f} ms", text())
            browser.run("[...document.querySelectorAll('nav a')].find((a) => a.innerText === 'Compare').click()")
            eventually(lambda: browser.run("return document.getElementById('baseline') !== null"), what="a choice of runs")
            browser.run("""const list = document.getElementById('baseline');
                list.value = [...list.options].find((each) => each.innerText.startsWith('r1_ascend_pt')).value;
                list.dispatchEvent(new Event('change'));""")
            eventually(lambda: "Compared with r1_ascend_pt" in text(), what="the comparison")
            if shots:
                browser.screenshot(os.path.join(shots, "compare.png"))
            browser.run("[...document.querySelectorAll('nav a')].find((a) => a.innerText === 'Runs').click()")
            eventually(lambda: "minddata" in text(), what="the runs again")
            self.assertEqual(browser.run("return document.title"), "profd")
            browser.run("location.hash = '#/overview?run=0000'")
            eventually(lambda: "no such run" in text(), what="a run that is not there")
            hosts = browser.run("return performance.getEntriesByType('resource').map((each) => new URL(each.name).host)")
            self.assertEqual(set(hosts), {server.base.split("/")[2]})


@unittest.skipUnless(os.path.isdir(SHARED_DATA), "the data with known answers is not there")
class MindInsight(unittest.TestCase):
    """The calls of analysis 4.5."""

    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(serving(os.path.join(SHARED_DATA, "mindinsight"), os.path.join(SHARED_DATA, "made_minddata"), "--no-daemon",
                                                   "--listen", "127.0.0.1:0"))

    def answers(self, *place):
        with open(os.path.join(SHARED_DATA, *place, "answers.json"), encoding="utf-8") as file:
            return json.load(file)["values"]

    def call(self, path, body=None, **query):
        text = "&".join(f"{name}={urllib.request.quote(str(value))}" for name, value in query.items())
        return self.server.get(f"{REST}{path}?{text}", body)

    def test_training_trace(self):
        want = self.answers("mindinsight", "JOB3")
        got = self.call("training-trace/graph", dir="mindinsight/JOB3", type=0, device_id=1)
        graph = got["training_trace_graph"]
        self.assertEqual(len(graph), want["graph_line_count"])
        last = [{"name": p["name"], "start_ms": p["start"], "duration_ms": p["duration"]} for p in graph[-1]]
        reported = want["graph_last_line_as_asserted_by_tests_st_func_profiler_test_analyse_py"]
        self.assertEqual(last, reported)
        row = want["average_row"]
        summary = got["summary"]
        self.assertEqual(summary["total_time"], row["total_ms"])
        for name in ("iteration_interval", "fp_and_bp", "tail"):
            self.assertEqual(summary[name], row[name + "_ms"])
            self.assertEqual(summary[name + "_percent"], f"{row[name + '_percent']:.2f}%")
        self.assertEqual((got["size"], summary["total_steps"]), (want["step_count"], want["step_count"]))
        self.assertEqual(got["point_info"], want["point_info"])
        self.assertEqual(self.call("devices", train_id="./JOB3"), ["1"])
        target = self.call("training-trace/target-time-info", dir="JOB3", type="tail", device_id=1)
        self.assertEqual(len(target["info"]["tail"]), want["step_count"])
        self.assertEqual(target["summary"]["tail"], row["tail_ms"])

    def test_operators(self):
        want = self.answers("mindinsight", "JOB3")
        body = {"device_id": "1", "op_type": "aicore_type", "sort_condition": {"name": "execution_time", "type": "descending"}}
        got = self.call("ops/search", body, train_id="JOB3")
        self.assertEqual(got["size"], want["op_type_count"])
        rows = {row[0]: dict(zip(got["col_name"], row)) for row in got["object"]}
        for row in want["op_types"]:
            mine = rows[row["op_type"]]
            self.assertAlmostEqual(mine["execution_time"], row["execution_time_ms"], places=5)
            self.assertEqual(mine["execution_frequency"], row["execution_frequency"])
            self.assertAlmostEqual(mine["percent"], row["percent"], delta=0.0051)
        times = [row[got["col_name"].index("execution_time")] for row in got["object"]]
        self.assertEqual(times, sorted(times, reverse=True))
        body["filter_condition"] = {"op_type": {"in": ["Mul", "AssignAdd"]}}
        self.assertEqual({row[0] for row in self.call("ops/search", body, train_id="JOB3")["object"]}, {"Mul", "AssignAdd"})
        body["filter_condition"] = {"op_type": {"partial_match_str_in": ["ASSIGN"]}}
        some = {row["op_type"] for row in want["op_types"] if "assign" in row["op_type"].lower()}
        self.assertEqual({row[0] for row in self.call("ops/search", body, train_id="JOB3")["object"]}, some)
        body.update(op_type="aicore_detail", filter_condition={}, group_condition={"limit": 15, "offset": 1}, sort_condition={})
        page = self.call("ops/search", body, train_id="JOB3")
        self.assertEqual((page["size"], len(page["object"])), (want["op_count"], 15))

    def test_pipelines(self):
        for case in ("healthy", "data_processing_slow", "transmission_slow", "no_get_next_log_slow"):
            want = self.answers("made_minddata", case)["v1.0.0"]
            with self.subTest(case=case):
                self.assertEqual(self.call("process_summary", train_id=case), want["process_summary"])
                for kind, name in (("get_next", "get_next"), ("device_queue", "device_queue")):
                    if want.get(name + "_summary"):  # null: MindInsight has no answer without a log
                        self.assertEqual(self.call("queue_info", train_id=case, type=kind)["summary"], want[name + "_summary"])
                    if want.get(name + "_time_summary"):
                        reported = want[name + "_time_summary"]["time_summary"]
                        mine = self.call("minddata_op", train_id=case, type=kind)["summary"]["time_summary"]
                        self.assertEqual({key + "_ms": value for key, value in mine.items()}, reported)

    def test_timeline_and_advice(self):
        want = self.answers("mindinsight", "JOB3")["timeline_summary"]
        got = self.call("timeline-summary", dir="JOB3", device_id=1)
        self.assertAlmostEqual(got["total_time"], want["total_time_us"], places=3)
        self.assertEqual({name: got[name] for name in ("num_of_streams", "num_of_ops", "op_exe_times")},
                         {name: want[name] for name in ("num_of_streams", "num_of_ops", "op_exe_times")})
        events = self.call("timeline", dir="JOB3", device_id=1)
        reduces = [event for event in events if event["pid"] == 10000]
        self.assertEqual(len(events) - len(reduces), want["op_exe_times"])
        graph = self.answers("mindinsight", "JOB3")["graph_last_line_as_asserted_by_tests_st_func_profiler_test_analyse_py"]
        for part in (each for each in graph if each["name"]):
            found = sorted((event for event in reduces if event["name"] == part["name"]), key=lambda event: event["ts"])
            self.assertEqual(len(found), self.answers("mindinsight", "JOB3")["step_count"])
            self.assertEqual({event["tid"] for event in found}, {int(part["name"].split("_")[1])})
            times = [event["dur"] for event in found[1:]]  # the average leaves the first step out
            self.assertAlmostEqual(sum(times) / len(times) / 1000, part["duration_ms"], places=3)
        self.assertEqual(min(event["ts"] for event in events), 0)
        self.assertEqual(set(events[0]), {"name", "ph", "tid", "ts", "dur", "pid", "args"})
        self.assertNotIn("step_trace-iter_interval", self.call("summary/propose", train_id="JOB3"))  # 0.2 ms

    def test_wrong_calls(self):
        for path, body, status in (("devices?train_id=nowhere", None, 404), ("nothing?train_id=JOB3", None, 404), ("devices", None, 404),
                                   ("ops/search?train_id=JOB3", {"op_type": 7}, 400), ("ops/search?train_id=JOB3", None, 405)):
            with self.subTest(path=path):
                got, headers, text = self.server.request(REST + path, body)
                self.assertEqual((got, headers["Content-Type"]), (status, "application/json"))
                self.assertTrue(json.loads(text)["error"]["message"])
        beyond = {"op_type": "aicore_type", "group_condition": {"limit": 5, "offset": 10**6}}
        self.assertEqual(self.call("ops/search", beyond, train_id="JOB3")["object"], [])


if __name__ == "__main__":
    main()
