#!/usr/bin/env python3
"""A training loop that does no training: steps of some milliseconds with the phases of a real one.

    train.py --steps 20 --step-ms 50                        under PROFILING_OPTIONS, or `profctl start --job`
    train.py --steps 20 --profile-from 5 --profile-steps 3  profiles itself
"""

import argparse
import json
import os
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
import profd  # noqa: E402

PHASES = (("data", 0.1), ("forward", 0.3), ("backward", 0.45), ("update", 0.15))


def spend(seconds):
    """Keeps a core busy, as a real step would."""
    end = time.perf_counter() + seconds
    value = 1.0
    while time.perf_counter() < end:
        value = value * 1.0000001 + 1e-9
    return value


class Ranks:
    """The ranks on this node wait for each other after every step, as real ones do in a collective
    operation: rank 0 listens on a socket that goes with it, the others begin with the step it is in.
    What cannot be reached is not waited for."""

    NUMBER = struct.Struct("=q")
    PATIENCE = 10

    def __init__(self, rank):
        self.listener, self.peers, self.first = None, [], 0
        rank = int(os.environ.get("RANK", "0")) if rank is None else rank
        if int(os.environ.get("WORLD_SIZE", "1")) < 2:
            return
        job = os.environ.get("PROFD_JOB_ID") or os.environ.get("SLURM_JOB_ID") or "job"
        name = f"\0profd-example-{os.getuid()}-{job}"
        if rank == 0:
            self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self.listener.setblocking(False)
            try:
                self.listener.bind(name)
                self.listener.listen(64)
            except OSError:
                self.listener = None
            return
        end = time.monotonic() + self.PATIENCE
        while not self.peers and time.monotonic() < end:
            peer = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            peer.settimeout(self.PATIENCE)
            try:
                peer.connect(name)
                self.peers.append(peer)
                self.first = self.receive(peer) or 0
            except OSError:
                peer.close()
                time.sleep(0.02)

    def receive(self, peer):
        """The number that was sent; None: the other end is gone."""
        try:
            return self.NUMBER.unpack(peer.recv(self.NUMBER.size))[0]
        except (OSError, struct.error):
            self.peers.remove(peer)
            return None

    def send(self, number):
        for peer in list(self.peers):
            try:
                peer.send(self.NUMBER.pack(number))
            except OSError:
                self.peers.remove(peer)

    def after(self, step):
        if self.listener is None:
            self.send(step)
            for peer in list(self.peers):
                self.receive(peer)
            return
        for peer in list(self.peers):
            self.receive(peer)
        try:
            while True:
                peer, _ = self.listener.accept()
                peer.settimeout(self.PATIENCE)
                self.peers.append(peer)
        except BlockingIOError:
            self.send(step + 1)


def train_one_step(step, seconds):
    for phase, share in PHASES:
        with profd.annotate(phase):
            spend(seconds * share)
    if step % 10 == 0:
        profd.mark(f"checkpoint {step}")


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--step-ms", type=float, default=50)
    parser.add_argument("--profile-from", type=int, help="profile from this step on")
    parser.add_argument("--profile-steps", type=int, default=2)
    parser.add_argument("--options", default='{"sys_interconnection_freq": 50, "msproftx": "on"}',
                        help="PROFILING_OPTIONS for --profile-from (JSON)")
    parser.add_argument("--job", help="job id (default: from the environment)")
    parser.add_argument("--rank", type=int)
    parser.add_argument("--devices", help="physical ids, e.g. 0,1")
    parser.add_argument("--wait", type=float, default=0, help="seconds to wait for the daemon")
    return parser.parse_args(arguments)


def main(arguments):
    args = parse(arguments)
    devices = [int(x) for x in args.devices.split(",")] if args.devices else None
    profd.init(job_id=args.job, rank=args.rank, devices=devices, framework="example",
               wait=args.wait)
    profile = None
    if args.profile_from is not None:
        profile = profd.Profile(args.options, start_step=args.profile_from, steps=args.profile_steps,
                                label="train.py", strict=True)
        try:
            profile.start()
        except profd.ProfdError as error:  # training continues
            print(f"not profiled: {error}", file=sys.stderr)
    ranks = Ranks(args.rank)
    for step in range(ranks.first, args.steps):
        with profd.step(step):
            train_one_step(step, args.step_ms / 1000)
            ranks.after(step)
    summary = profile.stop() if profile else profd.session(refresh=1.0)
    counters = profd.counters()
    profd.shutdown()
    print(json.dumps({"steps": args.steps, "session": summary, "marks": counters}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
