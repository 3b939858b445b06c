"""usage: recent.py [--since BASE] PATH...

C++ sources below the paths, the ones that changed last first; with --since only what changed since the
commit BASE, and the sources that go with changed headers. Needs git's index; history as far as it is here.
"""

import os
import subprocess
import sys


def git(root, *arguments):
    return subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True).stdout


def last_changes(root):
    """When each file was committed last, as far as the history is here; what is not committed is newest."""
    when, now = {}, 0
    for line in git(root, "log", "-n", "2000", "--format=:%ct", "--name-only").splitlines():
        if line.startswith(":"):
            now = int(line[1:])
        elif line:
            when.setdefault(line, now)
    for line in git(root, "status", "--porcelain", "--untracked-files=all").splitlines():
        when[line[3:].split(" -> ")[-1].strip('"')] = 1 << 40
    return when


def changed_since(root, base):
    """Files that differ from the commit `base`, those not yet in git included."""
    names = set(git(root, "diff", "--name-only", base).splitlines())
    return names | set(git(root, "ls-files", "--others", "--exclude-standard").splitlines())


def users_of(root, headers, sources):
    """For each header the source that goes with it: of the same name, else the first that includes it."""
    chosen = set()
    for header in headers:
        stem = header.rsplit(".", 1)[0]
        twin = next((name for name in (stem + ".cc", stem + "_test.cc") if name in sources), None)
        chosen.add(twin or next((name for name in sources if includes(root, name, header)), None))
    return chosen - {None}


def includes(root, source, header):
    with open(os.path.join(root, source), encoding="utf-8", errors="replace") as file:
        return f'#include "{header}"' in file.read()


def sources(root, paths, base=None):
    """C++ sources below `paths`, the ones that changed last first; with `base` only what changed since."""
    names = git(root, "ls-files", "--cached", "--others", "--exclude-standard", "--", *paths).splitlines()
    names = sorted(name for name in set(names) if name.endswith(".cc") and os.path.exists(os.path.join(root, name)))
    when = last_changes(root)
    names.sort(key=lambda name: -when.get(name, 0))
    if base is None:
        return names
    changed = changed_since(root, base)
    modules = {path.split("/")[0] for path in names}
    headers = [name for name in changed if name.endswith(".h") and name.split("/")[0] in modules]
    keep = changed | users_of(root, headers, names)
    return [name for name in names if name in keep]


def main():
    arguments = sys.argv[1:]
    base = arguments[1] if arguments[:1] == ["--since"] else None
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    print("\n".join(sources(root, arguments[2:] if base else arguments, base)))


if __name__ == "__main__":
    main()
