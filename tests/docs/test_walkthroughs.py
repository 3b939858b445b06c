#!/usr/bin/env python3
"""The walkthroughs of the documents, command by command: blocks marked ```sh run in one shell in their order, and print
what the block marked ```text behind them says.

`...` in a line stands for anything, a line of `...` alone for any lines, `~7.5` for any number; several blanks count as one,
empty lines as none.
A command that fails is a failure, whatever it prints (a document that wants one to fail adds `|| echo ...`).
"""

import contextlib
import os
import re
import selectors
import signal
import subprocess
import time
import unittest

from profd_harness import BUILD, REPO, RUNNER, Daemon, is_sanitized, main, scaled, temp_folder
from text_files import read_text, write_text

FOLDER = os.path.join(REPO, "docs", "walkthroughs")
END = "--- end of block ---"
SECONDS = 120  # of one block


def blocks(text):
    """[first line, commands, expected output or None] of each block of commands."""
    found, open_to_output = [], False
    for fence in re.finditer(r"^```(\w*)[^\n]*\n(.*?)^```$", text, re.M | re.S):
        line = text.count("\n", 0, fence.start()) + 2
        if fence[1] == "sh":
            found.append([line, fence[2], None])
        elif fence[1] == "text":
            if not open_to_output:
                raise AssertionError(f"line {line}: output behind no block of commands")
            found[-1][2] = fence[2]
        open_to_output = fence[1] == "sh"
    return found


def plain(text):
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def pattern(lines):
    def line_pattern(line):
        parts = re.split(r"(\.\.\.|~\d[\d.]*)", line)
        return "".join(re.escape(part) if n % 2 == 0 else ".*" if part == "..." else r"-?\d[\d.]*" for n, part in enumerate(parts)) + r"\n"
    return re.compile("".join(r"(?:.*\n)*?" if line == "..." else line_pattern(line) for line in lines))


def difference(expected, printed):
    """What of the expected lines is not there; "" if all are."""
    lines, got = plain(expected), "".join(line + "\n" for line in plain(printed))
    if pattern(lines).fullmatch(got):
        return ""
    fits = next((n for n in range(len(lines), -1, -1) if pattern(lines[:n]).match(got)), 0)
    missing = f"expected at its line {fits + 1}: {lines[fits]}" if fits < len(lines) else "expected nothing more"
    return f"{missing}\n--- printed ---\n{printed}"


class Shell:
    """One bash for all blocks of a document."""

    def __init__(self, folder, environment):
        self.process = subprocess.Popen(["bash", "--noprofile", "--norc"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, cwd=folder, env=environment, start_new_session=True)
        self.block = os.path.join(folder, ".block")
        self.send("failed=(); trap 'failed+=(\"$? of: $BASH_COMMAND\")' ERR\n")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """Nothing that a block has started is left."""
        self.process.stdin.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()

    def send(self, text):
        self.process.stdin.write(text.encode())
        self.process.stdin.flush()

    def run(self, commands):
        """What they print, and the codes of those that fail."""
        write_text(self.block, commands)
        self.send(f'. {self.block} < /dev/null; printf "\\n%s\\n" "{END}" "${{failed[@]}}" "{END}"; failed=()\n')
        printed, end = b"", time.monotonic() + scaled(SECONDS)
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while printed.count(END.encode()) < 2:
                if not selector.select(end - time.monotonic()):
                    raise AssertionError(f"not within {scaled(SECONDS):.0f} s:\n{commands}{printed.decode(errors='replace')}")
                more = os.read(self.process.stdout.fileno(), 65536)
                if not more:
                    raise AssertionError(f"the shell has ended:\n{commands}{printed.decode(errors='replace')}")
                printed += more
        output, failed, _ = printed.decode(errors="replace").split(END)
        return output, failed.strip()


def walk(name, text, folder, environment):
    """Runs a document; raises at the first block that is not as it says. The number of blocks."""
    found = blocks(text)
    with Shell(folder, environment) as shell:
        for line, commands, expected in found:
            printed, failed = shell.run(commands)
            where = f"{name}:{line}\n{commands}"
            if failed:
                raise AssertionError(f"{where}--- fails ---\n{failed}\n--- printed ---\n{printed}")
            different = expected is not None and difference(expected, printed)
            if different:
                raise AssertionError(f"{where}--- {different}")
    return len(found)


def environment_of(**more):
    kept = {name: value for name, value in os.environ.items()
            if not re.match("PROFD_|PROFILING_|AOE_|TUNE_|SLURM_|ASCEND_|RANK|WORLD_SIZE|LOCAL_RANK|LD_LIBRARY_PATH|PYTHON", name)}
    return {**kept, "PROFD_BUILD_DIR": BUILD, "NO_COLOR": "1", **more}


@unittest.skipIf(is_sanitized() or RUNNER, "of this machine's ordinary build")
class Walkthroughs(unittest.TestCase):
    def walk(self, name, least, part=None):
        """In a folder of its own, with a daemon of its own, as docs/getting-started.md says it; `part`: a section of it alone."""
        daemon = Daemon(scenario_text=read_text(FOLDER, "node.toml"))
        text = read_text(FOLDER, name)
        if part is not None:
            text = text.split(f"\n## {part}\n")[1].split("\n## ")[0]
        text = f"```sh\n. {FOLDER}/env.sh\n```\n" + text
        folder = temp_folder(self)
        with daemon:
            sockets = {"PROFD_SOCKET": daemon.socket, "PROFD_ATTACH_SOCKET": daemon.attach_socket}
            self.assertGreaterEqual(walk(name, text, folder, environment_of(**sockets)), least)

    def test_how_to_run_them(self):
        """The document's own commands; its daemon is the reader's."""
        text = read_text(REPO, "docs", "getting-started.md").split("\n## Walkthroughs\n")[1]
        folder = temp_folder(self)
        os.symlink(os.path.join(REPO, "docs"), os.path.join(folder, "docs"))
        self.assertGreaterEqual(walk("getting-started.md", text, folder, environment_of(TMPDIR=folder)), 2)

    def test_profiling_options(self):
        self.walk("profiling-options.md", 12)

    def test_advisor(self):
        self.walk("../analysis.md", 12, "Walkthrough of the advisor")

    def test_mindspore(self):
        self.walk("frameworks.md", 12, "MindSpore")

    def test_pytorch(self):
        self.walk("frameworks.md", 10, "PyTorch end to end")

    def test_tuning(self):
        self.walk("tuning.md", 12)


class Runner(unittest.TestCase):
    """What is wrong in a document is found."""

    def walked(self, text):
        folder = temp_folder(self)
        return walk("it.md", text, folder, environment_of())

    def assert_wrong(self, text, said):
        with self.assertRaises(AssertionError) as raised:
            self.walked(text)
        self.assertIn(said, str(raised.exception))

    def test_right(self):
        self.assertEqual(self.walked("```sh\nexport A=5\n```\nIt prints:\n```sh\nprintf 'a  %s 2.5\\n\\nb\\nc\\nd\\n' $A\n```\n```text\na ... ~7\n...\nd\n```\n"
                                     "```sh\nfalse || echo \"exit code $?\"\n```\n```text\nexit code 1\n```\n"), 3)

    def test_other_output(self):
        for expected in ("a 5\n", "a 4\nb\n", "a 5\nb\nc\n", "a ...\nb ...\n", "...\na\nb\n", "a ~5\nb ~5\n", "~7 5\nb\n", ""):
            with self.subTest(expected):
                self.assert_wrong(f"```sh\nprintf 'a 5\\nb\\n'\n```\n```text\n{expected}```\n", "expected")

    def test_a_command_fails(self):
        self.assert_wrong("```sh\necho a\nls /nowhere\necho b\n```\n```text\na\n...\nb\n```\n", "2 of: ls /nowhere")
        self.assert_wrong("```sh\ntrue\n```\n```sh\nnot_there_at_all\n```\n", "127 of: not_there_at_all")
        self.assert_wrong("```sh\nexit 3\n```\n", "the shell has ended")

    def test_output_of_no_command(self):
        self.assert_wrong("```text\na\n```\n", "line 2: output behind no block")
        self.assert_wrong("```sh\necho a\n```\n```text\na\n```\n```text\na\n```\n", "line 8: output behind no block")


if __name__ == "__main__":
    main()
