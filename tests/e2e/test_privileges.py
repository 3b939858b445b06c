"""What each capability of the unit is for: the daemon runs without one at a time and must lose exactly
what docs/security-model.md says, in words. And as another user than root, with and without them.

Needs root: only root can give capabilities away.
"""

import os
import re
import shutil
import subprocess
import tempfile
import unittest

from profd_harness import ALICE, BUILD, IS_ROOT, REPO, TEST_GROUP, Daemon, eventually, group_id, main, temp_folder
from text_files import read_text, write_text
from toml_files import scenario_text

SETPRIV = shutil.which("setpriv")
PROFD_USER = 61009
REFUSED = 3
START = ("--all", "--job", "rights", "--sys-interconnection-freq", "20")
# What is lost without it; everything else must go on.
LOST = {
    "CAP_CHOWN": {"sockets of the group", "dumps of users"},
    "CAP_DAC_OVERRIDE": {"dumps of users", "jobs by environment", "system calls of threads"},
    "CAP_SYS_PTRACE": {"jobs by environment", "system calls of threads"},
}
ALL = frozenset(LOST)


def unit_capabilities():
    return set(re.findall(r"^CapabilityBoundingSet=(CAP_\w+)", read_text(REPO, "systemd", "profd.service.in"), re.M))


class Confined(Daemon):
    """A daemon with these capabilities, as root or as another user in the sockets' group."""

    def __init__(self, capabilities, user=0, in_group=True, **how):
        self.capabilities, self.user, self.in_group = capabilities, user, in_group
        self.folder = tempfile.mkdtemp(prefix="profd-rights-")
        self.processes = os.path.join(self.folder, "processes")
        # Unattached, of a user, with its job in its environment only.
        self.training = subprocess.Popen(["sleep", "600"], env={"PROFD_JOB_ID": "plain", "RANK": "3"}, user=ALICE,
                                         group=ALICE, extra_groups=[])
        write_text(self.processes, f"{self.training.pid} 0\n")
        os.chmod(self.folder, 0o755)
        text = scenario_text(processes_file=self.processes, faults=how.pop("faults", ()))
        super().__init__(scenario_text=text, config={"daemon": {"socket_group": TEST_GROUP, "admin_group": ""}}, **how)
        if user:
            for name in (self.base, self.dump_root):
                os.chown(name, user, group_id())
        os.chmod(self.dump_root, 0o711)

    def command(self):
        names = [name[4:].lower() for name in sorted(self.capabilities)]
        ways = ["setpriv", "--no-new-privs", "--bounding-set", ",".join(["-all", *(f"+{n}" for n in names)])]
        if self.user:
            kept = ",".join(f"+{n}" for n in names) or "-all"
            ways += [f"--reuid={self.user}", f"--regid={group_id()}", "--clear-groups",
                     f"--inh-caps={kept}", f"--ambient-caps={kept}"]
        else:
            ways += ["--inh-caps=-all", f"--groups={group_id()}" if self.in_group else "--clear-groups"]
        return [*ways, "--", *super().command()]

    def dispose(self):
        try:
            super().dispose()
        finally:
            self.training.kill()
            self.training.wait()
            shutil.rmtree(self.folder, ignore_errors=True)

    # What may work ----------------------------------------------------------------------------

    def alice(self, *words):
        return self.run(*words, user=ALICE, groups=[group_id()])

    def sockets_of_the_group(self):
        return self.alice("status").returncode == 0

    def dumps_of_users(self):
        """A whole one: made, written on, read back, removed."""
        started = self.alice("start", *START)
        if started.returncode == REFUSED:
            return started.stderr + started.stdout
        session = self.ctl("list", "--active", user=ALICE, groups=[group_id()])["sessions"][0]
        identity = session["session_id"]
        self.until_records(identity, 50)
        for words in (("stop", identity), ("fetch", identity, "--out", self.out()), ("rm", identity)):
            result = self.alice(*words)
            if result.returncode not in (0, 5):
                return f"profctl {words[0]}: {result.stderr}"
        return not os.path.exists(session["dump_path"])

    def out(self):
        folder = os.path.join(self.folder, "out")
        if not os.path.isdir(folder):
            os.mkdir(folder)
            os.chmod(folder, 0o777)
        return folder

    def jobs_by_environment(self):
        """A process of another user that uses a device and never attaches."""
        def listed():
            jobs = self.ctl("jobs")["jobs"]
            return jobs if any(p["pid"] == self.training.pid for j in jobs for p in j["processes"]) else None

        jobs = eventually(listed, what="the driver lists the process")
        return any(job["job_id"] == "plain" for job in jobs)

    def system_calls_of_threads(self):
        """Of the same process, which sleeps."""
        [thread] = self.ctl("stacks", "--pid", self.training.pid)["processes"][0]["threads"]
        if thread["state"] != "sleeping":
            return f"its state is {thread['state']}"
        return thread["system_call"] == "clock_nanosleep"

    def works(self):
        """{what: True, False, or why not}"""
        found = {"sockets of the group": self.sockets_of_the_group(),
                 "jobs by environment": self.jobs_by_environment(),
                 "system calls of threads": self.system_calls_of_threads()}
        if found["sockets of the group"]:
            found["dumps of users"] = self.dumps_of_users()
        return found


@unittest.skipUnless(IS_ROOT and SETPRIV, "only root can give capabilities away, with setpriv")
class Privileges(unittest.TestCase):
    def assert_lost(self, daemon, missing):
        """Exactly what the missing ones are for is lost, and said."""
        lost = set().union(*(LOST[name] for name in missing))
        if daemon.in_group:
            lost.discard("sockets of the group")
        for what, answer in daemon.works().items():
            self.assertEqual(answer is True, what not in lost, f"without {missing}: {what}: {answer}")
            if what == "dumps of users" and answer is not True:
                for name in missing & {"CAP_CHOWN", "CAP_DAC_OVERRIDE"}:
                    self.assertIn("not allowed", answer)
                    self.assertIn(name, answer)
        log = daemon.log(1000)
        for name in ALL:
            said = re.search(rf"a right is missing capability={name} loss=", log) is not None
            self.assertEqual(said, name in missing and daemon.user == 0, f"{name}\n{log}")
        # Whatever is missing: figures.
        self.assertEqual(daemon.metric("atlas_npu_up"), 2)

    def test_the_table_is_the_unit(self):
        self.assertEqual(unit_capabilities(), ALL)
        text = read_text(REPO, "docs", "security-model.md")
        for name in ALL:
            self.assertIn(f"| `{name}` |", text)

    def test_all_of_them(self):
        with Confined(ALL) as d:
            self.assert_lost(d, set())

    def test_one_at_a_time(self):
        for name in sorted(ALL):
            with self.subTest(without=name), Confined(ALL - {name}) as d:
                self.assert_lost(d, {name})
                self.assertEqual([right.split(":")[0] for right in d.ctl("status")["missing_rights"]], [name])
                self.assertIn(f"  without    {name}: ", d.run("status", json_output=False).stdout)

    def test_group_of_the_sockets(self):
        """Without CAP_CHOWN root gives the sockets only to groups it is in."""
        with Confined(ALL - {"CAP_CHOWN"}, in_group=False) as d:
            self.assertFalse(d.sockets_of_the_group())
            self.assertIn(f"to group {TEST_GROUP}: Operation not permitted", d.log(1000))

    def test_as_user_profd(self):
        with Confined(ALL, user=PROFD_USER) as d:
            self.assertIn(f"Uid:\t{PROFD_USER}\t", read_text(f"/proc/{d.pid}/status"))
            self.assert_lost(d, set())

    def test_as_user_profd_with_nothing(self):
        with Confined(frozenset(), user=PROFD_USER) as d:
            works = d.works()
            self.assertIs(works["sockets of the group"], True)
            self.assertIs(works["jobs by environment"], False)
            self.assertIn("without CAP_CHOWN and CAP_DAC_OVERRIDE", works["dumps of users"])
            # Live samples need no rights.
            started = d.ctl("start", "--no-dump", *START, user=ALICE, groups=[group_id()])
            d.ctl("stop", started["session_id"], user=ALICE, groups=[group_id()])

    def test_unsafe_libraries(self):
        """Who holds a right of root's loads no other user's library, whatever its user."""
        folder = temp_folder(self)
        os.chmod(folder, 0o755)
        args = []
        for option, name in (("--hal-library", "libascend_hal.so"), ("--dcmi-library", "libdcmi.so")):
            args += [option, shutil.copy(os.path.join(BUILD, "sim", name), folder)]
            os.chown(args[-1], ALICE, ALICE)
        for capabilities, loaded in ((ALL, False), (frozenset(), True)):
            with Confined(capabilities, user=PROFD_USER, simulate=False, args=args) as d:
                driver = d.ctl("status")["driver"]
                for library in ("hal", "dcmi"):
                    self.assertEqual(bool(driver.get(library + "_path")), loaded, driver)
                    if not loaded:
                        self.assertRegex(driver[library + "_error"], "belongs to uid|writable by others")

    def test_a_driver_that_refuses(self):
        """libdcmi answers only root in containers: each query is refused, and that is reported."""
        with Confined(ALL, faults=[{"kind": "dcmi_error", "code": -8002}]) as d:
            def message():
                state = {c["name"]: c for c in d.ctl("collectors")["collectors"]}["npu_state"]
                return state.get("last_error")

            self.assertIn("not allowed", eventually(message, what="an error of npu_state"))


if __name__ == "__main__":
    main()
