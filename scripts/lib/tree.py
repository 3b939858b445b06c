"""What the checks share: walking the tree, C++ text without comments, findings, self-tests."""

import os
import re
import sys
import tempfile

CODE_SUFFIXES = (".h", ".cc", ".c")
SKIPPED_FOLDERS = {"build", ".git", "__pycache__"}


def root_of_repository():
    return os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def files(root, wanted=lambda path: True):
    """Paths below `root`, relative to it, sorted; build output and git's own files are left out."""
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = [f for f in folders if f not in SKIPPED_FOLDERS]
        for name in names:
            path = os.path.relpath(os.path.join(folder, name), root)
            if wanted(path):
                found.append(path)
    return sorted(found)


def code_files(root):
    return files(root, lambda path: path.endswith(CODE_SUFFIXES))


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        return file.read()


_TOKEN = re.compile(
    r'R"(?P<tag>[^\s()\\]{0,16})\((?:.|\n)*?\)(?P=tag)"'  # raw string
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'"
    r"|//[^\n]*|/\*(?:.|\n)*?\*/")


def _blank(text):
    return re.sub(r"[^\n]", " ", text)


def without_comments(text, keep_strings=True):
    """`text` with comments (and, if asked, the insides of literals) blanked; lines and columns stay."""
    def replace(match):
        token = match.group(0)
        if token.startswith("/"):
            return _blank(token)
        if keep_strings:
            return token
        return token[0] + _blank(token[1:-1]) + token[-1]
    return _TOKEN.sub(replace, text)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def is_test(path):
    """Test code may lean on more than the code it tests."""
    return (re.search(r"(_(test|fuzz|bench)|(^|[/_])test_support)\.(cc|h)$", path) is not None or "/testing/" in path
            or path.startswith(("tests/", "bench/")))


class Findings:
    def __init__(self):
        self.lines = []

    def add(self, path, line, text):
        self.lines.append(f"{path}:{line}: {text}")


def self_test(check, clean, broken):
    """Runs `check(root, findings)` on a clean tree and on one broken tree per case.

    clean: {path: text}; broken: [({path: text} laid over the clean tree, "path:line: " that must be
    the beginning of the only finding)]. A check that cannot fail is worth nothing.
    """
    failures = 0
    for overlay, expected in [({}, None)] + broken:
        with tempfile.TemporaryDirectory() as root:
            for path, text in {**clean, **overlay}.items():
                os.makedirs(os.path.dirname(os.path.join(root, path)) or root, exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                    file.write(text)
            findings = Findings()
            check(root, findings)
            good = (findings.lines == [] if expected is None else
                    len(findings.lines) == 1 and findings.lines[0].startswith(expected))
            if not good:
                failures += 1
                print(f"self-test: expected {expected or 'no finding'}, got {findings.lines}")
    print(f"self-test: {len(broken) + 1 - failures} passed, {failures} failed")
    return 1 if failures else 0


def main(name, check, clean, broken, help_text):
    if sys.argv[1:] in (["-h"], ["--help"]):
        print(help_text.strip())
        return 0
    if sys.argv[1:] == ["--self-test"]:
        return self_test(check, clean, broken)
    if sys.argv[1:]:
        print(f"{name}: unknown argument; see --help", file=sys.stderr)
        return 2
    findings = Findings()
    count = check(root_of_repository(), findings)
    for line in findings.lines:
        print(line)
    print(f"{name}: {count} files, {len(findings.lines)} findings")
    return 1 if findings.lines else 0
