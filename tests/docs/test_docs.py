"""The documents against the tree: messages quoted word for word are said by the program, links lead
somewhere. Messages stand in blocks marked ```message; `...` in them stands for anything."""

import fnmatch
import os
import re
import subprocess
import sys
import unittest

import run_tests

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "scripts", "lib"))
import tree  # noqa: E402

SOURCES = (".cc", ".h", ".py", ".proto")
MODULES = ("base", "client", "collectors", "daemon", "driver", "dump", "export", "proto", "sim")


def tracked(*patterns):
    names = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns],
                           cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\n")
    return [name for name in names if name and os.path.exists(os.path.join(ROOT, name))]


def read(name):
    with open(os.path.join(ROOT, name), encoding="utf-8", errors="replace") as file:
        return file.read()


def source_text():
    """All code, string literals that the compiler joins joined, escaped quotes as they are printed."""
    parts = []
    for name in tracked(*MODULES):
        if name.endswith(SOURCES) and "_test." not in name:
            parts.append(re.sub(r'"\s*\n\s*"', "", read(name)).replace('\\"', '"'))
    return "\n".join(parts)


def anchors_of(text):
    """GitHub's anchors of the headings."""
    found = set(re.findall(r'<a (?:id|name)="([^"]+)"', text))
    for heading in re.findall(r"^#+ +(.*?) *$", re.sub(r"```.*?```", "", text, flags=re.S), re.M):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        found.add(re.sub(r"[^\w\- ]", "", plain.replace("`", "")).replace(" ", "-"))
    return found


class Messages(unittest.TestCase):
    def test_quoted_messages_are_in_the_program(self):
        code = source_text()
        missing, count = [], 0
        for name in tracked("docs/*.md", "*.md"):
            for message in re.findall(r"^```message\n(.*?)\n```", read(name), re.M | re.S):
                count += 1
                for fragment in message.split("..."):
                    # What is left of a placeholder's neighbours: blanks and punctuation alone say nothing.
                    fragment = fragment.strip(" .,:\n")
                    if len(fragment) > 2 and fragment not in code:
                        missing.append(f"{name}: {fragment!r}")
        self.assertGreater(count, 25)
        self.assertEqual(missing, [], "no source says this")

    def test_messages_name_no_document(self):
        """No package installs docs/*.md but the runbook: what is printed or installed does not send its reader there."""
        named, count = [], 0
        for name in tracked("analysis", *MODULES, "systemd/profd.toml", "dashboards/grafana/*.json"):
            if "_test." in name or not name.endswith((".cc", ".h", ".toml", ".json")):
                continue
            count += 1
            # Comments of C++ are for who has the sources.
            text = re.sub(r"(?<!:)//.*", "", read(name)) if name.endswith((".cc", ".h")) else read(name)
            if name != "systemd/profd.toml":
                text = "\n".join(re.findall(r'"[^"\n]*"', text))
            named += [f"{name}: {document}" for document in re.findall(r"docs/[a-z-]+\.md", text)]
        self.assertGreater(count, 500)
        self.assertEqual(named, [])


class Extracts(unittest.TestCase):
    def test_extracts_are_in_their_files(self):
        """A block of code that names a file (```python client/x.py) is a part of it, however far indented."""
        wrong, count = [], 0
        for name in tracked("docs/*.md", "*.md"):
            for path, extract in re.findall(r"^```[\w+]+ (\S+)\n(.*?)^```$", read(name), re.M | re.S):
                count += 1
                lines = [line.strip() for line in extract.splitlines()]
                whole = [line.strip() for line in read(path).splitlines()]
                if not any(whole[at:at + len(lines)] == lines for at in range(len(whole))):
                    wrong.append(f"{name}: {path}")
        self.assertGreaterEqual(count, 3)
        self.assertEqual(wrong, [], "not what the file has")


class Printed(unittest.TestCase):
    def test_compatibility_is_up_to_date(self):
        build = os.environ.get("PROFD_BUILD_DIR", os.path.join(ROOT, "build", "dev"))
        runner = os.environ.get("PROFD_RUNNER", "").split()
        subprocess.run([os.path.join(ROOT, "scripts", "print-compatibility-doc"), "--check", *runner,
                        os.path.join(build, "bin", "profctl")], check=True)


class Links(unittest.TestCase):
    def test_links_lead_somewhere(self):
        broken, count = [], 0
        for name in tracked("*.md"):
            text = re.sub(r"```.*?```", "", read(name), flags=re.S)
            for target in re.findall(r"\[[^\]]*\]\(([^)\s]+)\)", text):
                if re.match(r"[a-z]+:", target):
                    continue
                count += 1
                path, _, anchor = target.partition("#")
                full = os.path.normpath(os.path.join(os.path.dirname(name), path)) if path else name
                if not os.path.exists(os.path.join(ROOT, full)):
                    broken.append(f"{name}: {target}: no such file")
                elif anchor and full.endswith(".md") and anchor not in anchors_of(read(full)):
                    broken.append(f"{name}: {target}: no such heading")
        self.assertGreater(count, 100)
        self.assertEqual(broken, [])


class Conflicts(unittest.TestCase):
    def test_no_marks_of_a_conflict_are_left(self):
        marked = [name for name in tracked() if re.search(r"^(?:<{7}|>{7}) ", read(name), re.M)]
        self.assertEqual(marked, [])


class Recipes(unittest.TestCase):
    def test_files_of_recipes_exist(self):
        """The files that CONTRIBUTING.md lists are there; of a new collector, those of each that is."""
        text = read("CONTRIBUTING.md")
        names = set(tracked())
        folders = re.findall(r"^collectors/(\w+)/\1_collector\.cc$", "\n".join(sorted(names)), re.M)
        self.assertGreater(len(folders), 15)
        missing, count = [], 0
        for recipe in re.findall(r"^## Add an? .*?(?=^## )", text, re.M | re.S):
            directory = ""
            for path in re.findall(r"`([\w./<>*-]+)`", recipe):
                if path.startswith((".", "/")):
                    continue  # .h beside the .cc before it; /proc
                if not re.search(r"/|\.(cc|h|proto|md|txt|py)$", path) or path.endswith("/"):
                    continue
                count += 1
                if "/" not in path:
                    path = f"{directory}/{path}"
                directory = os.path.dirname(path)
                for folder in folders if path.startswith("collectors/<name>") else ["*"]:
                    one = path.replace("<name>", folder)
                    if not any(fnmatch.fnmatchcase(name, one) for name in names):
                        missing.append(one)
        self.assertGreater(count, 30)
        self.assertEqual(missing, [])


class AttachProtocol(unittest.TestCase):
    """The tables of packets in docs/internals.md against proto/attach: a client is written from them."""

    def setUp(self):
        text = read("docs/internals.md").split("\n### Packets from the process\n")[1].split("\n### Ring\n")[0]
        self.rows = []  # type, members, every word that is quoted
        for line in text.splitlines():
            if line.startswith("| `"):
                cells = [" ".join(re.findall(r"`([^`]+)`", cell)) for cell in line.strip("| ").split(" | ")]
                self.rows.append((cells[0], set(cells[1].split()), set(re.findall(r"\w+", " ".join(cells)))))

    def words_of(self, packet):
        return set().union(*(words for name, _, words in self.rows if name == packet))

    def test_members(self):
        """Of each packet in its row; those of a part of packets in one row together."""
        code = "".join(read(f"proto/attach/{name}.cc") for name in ("attach_protocol", "collect_packet", "stacks_packet"))
        functions = re.findall(r"^(?:nlohmann::)?json (\w+)\([^)]*\) \{(?: ([^\n]*) \}$|\n(.*?)^\}$)", code, re.M | re.S)
        helpers, wrong, types = {}, [], set()
        for name, line, body in functions:
            body = line or body
            keys = set(re.findall(r'(?:[{\[]|Put\w+\(out, )"(\w+)"', body)) - {"type"}
            own = set(re.findall(r'(?:\bout\[|Put\w+\(out, |\{)"(\w+)"', re.sub(r"\.emplace_back\(.*", "", body))) - {"type"}
            if name != "ToJson":
                helpers[name] = own
                continue
            packet = re.search(r'\{"type", "(\w+)"\}|\b(\w+)\("(\w+)", m\.', body)
            if packet is None:
                if not any(own <= words for _, _, words in self.rows):
                    wrong.append(f"part of a packet: {sorted(own)}")
                continue
            kind = packet[1] or packet[3]
            own |= helpers.get(packet[2], set())
            types.add(kind)
            if not any(row == kind and own == members and keys <= words for row, members, words in self.rows):
                wrong.append(f"{kind}: {sorted(own)}")
        self.assertEqual(types, set(re.findall(r'\btype == "(\w+)"', code)))
        self.assertEqual(types, {row for row, _, _ in self.rows})
        self.assertEqual(wrong, [], "not the members in the table")

    def test_states(self):
        states = set(re.findall(r'\bkRecording = "(\w+)"', read("proto/attach/attach_protocol.h")))
        for name in tracked("daemon/session/*.cc"):
            if "_test" not in name:
                states |= set(re.findall(r'\bnotice\{?\.state = "(\w+)"', read(name)))
        self.assertGreaterEqual(len(states), 4)
        self.assertEqual(states - self.words_of("session"), set())
        states = set(re.findall(r'"(\w+)"', re.search(r"\bkCollectStateWords = \{(.*?)\}", read("proto/attach/collecting.h"), re.S)[1]))
        self.assertGreaterEqual(len(states), 10)
        self.assertEqual(states - self.words_of("collector"), set())


class Names(unittest.TestCase):
    """Names of C++ in the documents are in the sources: `Class::Function` as written, or in the body of that class."""

    # A target of CMake; an operator of torch.
    OTHERS = {"profd::profd", "aten::grid_sampler"}

    @classmethod
    def setUpClass(cls):
        cls.code = "\n".join(tree.without_comments(read(name), keep_strings=False)
                             for name in tracked(*MODULES, "analysis") if name.endswith((".cc", ".h")) and "_test." not in name)

    def bodies(self, owner):
        for found in re.finditer(rf"\b(?:class|struct|namespace)\s+(?:\w+::)*{owner}(?:\s+final)?\s*(?::[^:][^;{{}}]*)?\{{", self.code):
            depth, end = 1, found.end()
            while depth > 0 and end < len(self.code):
                depth += {"{": 1, "}": -1}.get(self.code[end], 0)
                end += 1
            yield self.code[found.end():end]

    def exists(self, name):
        if re.search(rf"\b{name}\b", self.code):
            return True
        owner, last = name.split("::")[-2:]
        return any(re.search(rf"\b{last}\b", body) for body in self.bodies(owner))

    def test_qualified_names(self):
        missing, count = [], 0
        for name in tracked("docs/*.md", "README.md"):
            text = re.sub(r"```.*?```", "", read(name), flags=re.S)
            for quoted in re.findall(r"`((?:[A-Za-z_]\w*::)+[A-Za-z_]\w*)(?:\([^`]*\))?`", text):
                count += 1
                if quoted not in self.OTHERS and not self.exists(quoted):
                    missing.append(f"{name}: {quoted}")
        self.assertGreater(count, 40)
        self.assertEqual(missing, [], "no source has this")

    def test_other_names(self):
        """In docs/internals.md, which is about the sources, those without a class too."""
        words = set(re.findall(r"\w+", self.code + "".join(map(read, tracked("proto/*.proto", "systemd/*.in")))))
        names = set(re.findall(r"`([A-Z][a-z0-9]+[A-Za-z0-9]*)(?:\(\))?`", read("docs/internals.md")))
        self.assertGreater(len(names), 40)
        self.assertEqual(names - words, set())

    def test_it_finds_mistakes(self):
        self.assertTrue(self.exists("CallEntry::Admit") and self.exists("App::Impl::Tick") and self.exists("BlockSink::OnLoss"))
        self.assertFalse(self.exists("Context::Identify") or self.exists("App::Impl::Heartbeat") or self.exists("NoSuchClass::Admit"))


class Threads(unittest.TestCase):
    def test_every_thread_is_in_the_table(self):
        """Names of threads are literals where they are created."""
        table = set(re.findall(r"`(profd-[a-z-]+)", read("docs/internals.md").split("\n## Threads\n")[1].split("\n## ")[0]))
        created = set()
        for name in tracked(*(f"{folder}/*.{suffix}" for folder in ("base", "daemon", "driver", "dump") for suffix in ("cc", "h"))):
            if "_test" not in name:
                created |= set(re.findall(r'(?:setname_np\(::pthread_self\(\), |Executor>\(|Executor \w+\{|SamplerPool>\('
                                          r'|Thread>?\w*\(|Thread \w+\(|RunStaggered\(|thread_?\(|(?:thread|executor_)\.emplace\(|thread\.Start\(|format\()'
                                          r'"(profd-[a-z-]+)', read(name)))
        self.assertGreater(len(created), 20)
        self.assertEqual(created - table, set())
        self.assertEqual(table - created, set())


class Locks(unittest.TestCase):
    def test_every_mutex_is_in_the_table(self):
        table = set(re.findall(r"(?m)^\| `([\w/.]+)` \|", read("docs/internals.md").split("\n## Locks\n")[1].split("\n## ")[0]))
        there = {name for name in tracked(*(f"{folder}/*.{suffix}" for folder in ("base", "collectors", "daemon", "driver", "dump")
                                            for suffix in ("cc", "h")))
                 if "_test" not in name and "/testing/" not in name and re.search(r"\bMutex \w+;", read(name))}
        self.assertGreater(len(there), 20)
        self.assertEqual(there - table, set())
        self.assertEqual(table - there, set())


class Licence(unittest.TestCase):
    def test_every_statement_gives_the_same(self):
        text = read("LICENSE")
        self.assertIn("Apache License\n                           Version 2.0, January 2004", text)
        self.assertIn("END OF TERMS AND CONDITIONS", text)
        self.assertRegex(read("packaging/debian/copyright"), r"(?m)^License: Apache-2\.0$")
        self.assertIn('license = {text = "Apache-2.0"}', read("client/python/pyproject.toml"))
        self.assertIn("Apache-2.0", read("README.md"))

    def test_notice_names_what_is_linked(self):
        """Every library that building needs, besides those of tests."""
        listed = subprocess.run([os.path.join(ROOT, "scripts", "install-deps"), "--for", "build", "--list"],
                                check=True, capture_output=True, text=True).stdout.split()
        libraries = {name for name in listed if name.endswith("-dev")}
        rows = re.findall(r"^\S.*?  +(\S+-dev)  +(\S.*?)  +(?:linked|compiled in|shared)$", read("NOTICE"), re.M)
        self.assertEqual(libraries - {"libgtest-dev", "libgmock-dev", "libbenchmark-dev"} - {name for name, _ in rows},
                         set())


class StandIns(unittest.TestCase):
    def test_tests_of_the_rows_exist(self):
        """sim/README.md names a test for every behaviour of the vendor's libraries: each is there."""
        cases = set()
        for name in tracked("*_test.cc"):
            cases.update(f"{suite}.{case}" for suite, case in re.findall(r"^TEST(?:_[FP]|_IN_CHILD)?\((\w+),\s*(\w+)\)", read(name), re.M))
        for name in tracked("tests/*/test_*.py"):
            file = os.path.basename(name)[5:-3]
            cases.update(f"{file}: {case}" for case in re.findall(r"^    def (test_\w+)\(self", read(name), re.M))
        section = read("sim/README.md").split("\n## What the stand-ins do, and the test of each\n")[1].split("\n## ")[0]
        rows = [line for line in section.splitlines() if line.startswith("| ") and "---" not in line
                and not line.startswith("| Behaviour")]
        self.assertGreater(len(rows), 40)
        for row in rows:
            named = re.findall(r"`([^`]+)`", row.split(" | ")[-1])
            self.assertTrue(named, row)
            self.assertEqual([test for test in named if test not in cases], [], row)


class ThreatModel(unittest.TestCase):
    """docs/security-model.md names the test of every attack: each is there, and every attack has one that runs
    against the daemon."""

    # What the table must have a row for; the first column says so in these words.
    ATTACKS = ("symbolic links", "hard links", "path injection", "a reused uid", "a reused pid",
               "exhaustion of descriptors", "at the daemon's path before it starts", "forged credentials",
               "uid 0 of a container", "TLS downgrade", "certificate of another role", "escape sequences",
               "labels that forge series", "gzip in a call", "gzip to the HTTP endpoint", "slices of a dump that decompress",
               "quota: every connection", "quota: sessions", "quota: memory", "quota: the disk", "quota: space for dumps",
               "quota: a flood of marks")
    # Unit tests decide here: no daemon takes part.
    ALONE = ("names in an archive",)

    def rows(self):
        text = read("docs/security-model.md").split("## Attacks, and the test of each")[1].split("\n## ")[0]
        lines = [line for line in text.splitlines() if line.startswith("|")][2:]
        return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]

    def setUp(self):
        self.python = {os.path.basename(name)[5:-3]: read(name) for name in tracked("tests/*/test_*.py")}
        self.cmake = "\n".join(read(name) for name in tracked("*CMakeLists.txt"))

    def exists(self, span):
        if ": " in span:
            name, test = span.split(": ")
            return bool(re.search(rf"^    def {test}\(self", self.python.get(name, ""), re.M))
        if span.startswith("fuzz_"):
            return f"profd_fuzzer({span[5:]} " in self.cmake
        return bool(re.search(rf"\b{span}(\.cc)?[\s)]", self.cmake))

    def test_tests_of_the_attacks_exist(self):
        rows = self.rows()
        missing = [span for row in rows for span in re.findall(r"`([^`]+)`", row[2]) if not self.exists(span)]
        self.assertEqual(missing, [], "named in docs/security-model.md and not there")
        self.assertFalse(self.exists("attack: test_that_does_not_exist") or self.exists("fuzz_nothing")
                         or self.exists("nothing_test"))

    def test_tests_of_the_limits_exist(self):
        rows = [line for line in read("docs/configuration.md").split("\n## Limits of calls\n")[1].splitlines() if re.match(r"\|[^-]", line)]
        spans = [re.findall(r"`([^`]+)`", row.rstrip("| ").split(" | ")[-1]) for row in rows if "test |" not in row]
        self.assertGreater(len(spans), 8)
        self.assertEqual([row for row in spans if not row or not all(map(self.exists, row))], [])

    def test_every_attack_has_a_test_against_the_daemon(self):
        rows = self.rows()
        self.assertEqual([name for name in self.ATTACKS if not any(name in row[0] for row in rows)], [])
        self.assertEqual([row[0] for row in rows if not re.search(r"`\w+: test_", row[2])
                          and not row[0].startswith(self.ALONE)], [])


if __name__ == "__main__":
    run_tests.main()
