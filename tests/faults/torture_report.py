"""The table and report.json of scripts/torture, from what its parts left in a folder. Exit code 1 if one
of them failed."""

import json
import os
import re
import sys


def read(folder, name):
    try:
        with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def counts(log):
    """Of a unittest log."""
    ran = re.findall(r"^Ran (\d+) tests? in", log, re.M)
    found = {key: int(number) for key, number in re.findall(r"(failures|errors|skipped)=(\d+)", log)}
    return {"tests": int(ran[-1]) if ran else 0, **found,
            "skips": sorted(set(re.findall(r"skipped ['\"](.*)['\"]$", log, re.M))),
            "failed": sorted(set(re.findall(r"^(?:FAIL|ERROR): (\w+)", log, re.M)))}


def main(folder):
    report = {"parts": {}}
    for line in read(folder, "parts").splitlines():
        name, code, seconds = line.split("\t")
        part = {"ok": code == "0", "exit_code": int(code), "seconds": int(seconds)}
        if name in ("matrix", "crash"):
            part.update(counts(read(folder, name + ".log")))
            killed = re.findall(r"^\d+ kills in .*$", read(folder, name + ".log"), re.M)
            if killed:
                part["reported"] = killed[-1]
        else:
            part.update(json.loads(read(folder, name + ".json") or "{}"))
        report["parts"][name] = part
    report["ok"] = all(part["ok"] for part in report["parts"].values())
    with open(os.path.join(folder, "report.json"), "w", encoding="utf-8") as out:
        json.dump(report, out, indent=1)
    for name, part in report["parts"].items():
        print(f"{name:10} {'ok' if part['ok'] else 'FAILED':7} {part['seconds']:5} s")
        for key, value in part.items():
            if key in ("ok", "seconds", "exit_code") or value in ([], {}):
                continue
            if isinstance(value, dict):
                value = "  ".join(f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}"
                                  for k, v in value.items())
            print(f"    {key:24} {value}")
    print(f"report: {os.path.join(folder, 'report.json')}")
    return 0 if report["ok"] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
