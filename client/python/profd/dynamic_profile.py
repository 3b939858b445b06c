"""usage: python3 -m profd.dynamic_profile --output DIR [--steps N] [--with-stack] ... [CONFIG_FOLDER]

Requests a profile of torch_npu's own profiler from a job that was started with PROF_CONFIG_PATH in its environment, and
that profd need not be part of: writes profiler_config.json into that folder, where torch_npu's dynamic profile looks for
changes. It records operators with shapes and call stacks, and takes aclprof: no session of profd that collects from
the same processes at that time gets anything.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import stat
import sys
from typing import Any, Dict, Iterator, List, Optional, Sequence

FILE = "profiler_config.json"
LEVELS = ("Level_none", "Level0", "Level1", "Level2")
METRICS = ("AiCoreNone", "PipeUtilization", "ArithmeticUtilization", "Memory", "MemoryL0", "ResourceConflictRatio",
           "MemoryUB", "L2Cache")
_MOST_STEPS, _MOST_RANKS = 1_000_000, 65_536


def config(output: str, *, steps: int = 1, warmup: int = 0, start_step: int = -1, ranks: Sequence[int] = (),
           with_stack: bool = False, record_shapes: bool = False, profile_memory: bool = False,
           with_modules: bool = False, analyse: bool = False, level: str = "Level0",
           aic_metrics: str = "AiCoreNone", l2_cache: bool = False, mstx: bool = False) -> Dict[str, Any]:
    """What torch_npu reads. `output`: where the results go, absolute; `start_step`: -1 = the next one; `ranks`: none =
    all of them. ValueError names every wrong argument."""
    wrong: List[str] = []
    if not os.path.isabs(output) or "\0" in output:
        wrong.append(f"output={output!r}: an absolute path")
    for name, value, least in (("steps", steps, 1), ("warmup", warmup, 0), ("start_step", start_step, -1)):
        if not least <= value <= _MOST_STEPS:
            wrong.append(f"{name}={value}: {least} to {_MOST_STEPS}")
    if len(ranks) > _MOST_RANKS or any(rank < 0 for rank in ranks):
        wrong.append(f"ranks: at most {_MOST_RANKS}, from 0")
    for name, word, words in (("level", level, LEVELS), ("aic_metrics", aic_metrics, METRICS)):
        if word not in words:
            wrong.append(f"{name}={word!r}: one of {', '.join(words)}")
    if wrong:
        raise ValueError("; ".join(wrong))
    return {
        "activities": ["CPU", "NPU"], "prof_dir": output, "analyse": analyse, "record_shapes": record_shapes,
        "profile_memory": profile_memory, "with_stack": with_stack, "with_flops": False, "with_modules": with_modules,
        "active": steps, "warmup": warmup, "start_step": start_step, "is_rank": bool(ranks), "rank_list": list(ranks),
        "async_mode": False, "metadata": {},
        "experimental_config": {
            "profiler_level": level, "aic_metrics": aic_metrics, "l2_cache": l2_cache, "op_attr": False,
            "gc_detect_threshold": None, "data_simplification": True, "export_type": ["text"],
            # Older releases of torch_npu know the first name only.
            "msprof_tx": mstx, "mstx": mstx}}


def write(folder: str, order: Dict[str, Any]) -> str:
    """Puts the order into the job's folder in one step; answers the file. The folder, and a file that is there, have to be
    the caller's own and not writable by others; links are not followed. OSError has what is wrong."""
    with _opened(folder) as fd:
        _check_owner(os.fstat(fd), folder)
        with contextlib.suppress(FileNotFoundError):
            there = os.stat(FILE, dir_fd=fd, follow_symlinks=False)
            if not stat.S_ISREG(there.st_mode):
                raise PermissionError(f"{folder}/{FILE} is not a regular file")
            _check_owner(there, f"{folder}/{FILE}")
        part = f".{FILE}.{os.getpid()}"
        out = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o640, dir_fd=fd)
        try:
            with os.fdopen(out, "w", encoding="utf-8") as file:
                json.dump(order, file, indent=2)
                file.flush()
                os.fsync(file.fileno())
            os.rename(part, FILE, src_dir_fd=fd, dst_dir_fd=fd)
        except BaseException:
            os.unlink(part, dir_fd=fd)
            raise
    return os.path.join(folder, FILE)


@contextlib.contextmanager
def _opened(folder: str) -> Iterator[int]:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)


def _check_owner(found: os.stat_result, path: str) -> None:
    if found.st_uid != os.geteuid():
        raise PermissionError(f"{path} belongs to user {found.st_uid}: run this as the job's user")
    if found.st_mode & 0o022:
        raise PermissionError(f"{path} can be written by others: chmod go-w")


def _arguments(words: Optional[Sequence[str]]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python3 -m profd.dynamic_profile", description=(__doc__ or "").split("\n\n")[1])
    parser.add_argument("folder", nargs="?", default=os.environ.get("PROF_CONFIG_PATH"), metavar="CONFIG_FOLDER",
                        help="the job's PROF_CONFIG_PATH (default: that of this environment)")
    parser.add_argument("--output", required=True, metavar="DIR", help="where the results go")
    parser.add_argument("--steps", type=int, default=1)
    parser.add_argument("--warmup", type=int, default=0)
    parser.add_argument("--start-step", type=int, default=-1, help="default: the next one")
    parser.add_argument("--ranks", default="", metavar="LIST", help="0,1,5 (default: all)")
    parser.add_argument("--level", default="Level0", help=", ".join(LEVELS))
    parser.add_argument("--aic-metrics", default="AiCoreNone", help=", ".join(METRICS))
    for switch in ("with-stack", "record-shapes", "profile-memory", "with-modules", "analyse", "l2-cache", "mstx"):
        parser.add_argument("--" + switch, action="store_true")
    return parser.parse_args(words)


def main(words: Optional[Sequence[str]] = None) -> int:
    args = vars(_arguments(words))
    folder, output = args.pop("folder"), os.path.abspath(args.pop("output"))
    try:
        if not folder:
            raise ValueError("no CONFIG_FOLDER, and no PROF_CONFIG_PATH in the environment")
        args["ranks"] = [int(rank) for rank in args["ranks"].split(",") if rank.strip()]
        print(write(folder, config(output, **args)))
    except ValueError as error:
        print(f"dynamic_profile: {error}", file=sys.stderr)
        return 3
    except OSError as error:
        print(f"dynamic_profile: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
