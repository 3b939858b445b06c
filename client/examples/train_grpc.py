#!/usr/bin/env python3
"""A training loop that profiles some of its own steps over gRPC. Needs grpcio and protobuf; train.py does the same
with libprofd, which needs neither and has marks too."""

import os
import sys
import time

import grpc

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
from profd import rpc  # noqa: E402


def start_profile(daemon):
    """Training must not fail because it cannot be profiled."""
    spec = rpc.SessionSpec(
        label="train_grpc.py",
        target={"devices": [int(os.environ.get("LOCAL_RANK", "0"))]},  # the NPU of this process
        options_json='{"sys_interconnection_freq": 50}',
        lease={"lease_ms": 10_000},  # it ends without StopSession, too: this long after this process
    )
    try:
        return daemon.StartSession(rpc.StartSessionRequest(spec=spec), timeout=60)
    except grpc.RpcError as error:
        print(f"not profiled: {error.details()}", file=sys.stderr)
        return None


def stop_profile(daemon, session_id):
    """Answers when the dump is complete."""
    try:
        session = daemon.StopSession(rpc.StopSessionRequest(session_id=session_id), timeout=120)
    except grpc.RpcError as error:
        print(f"profile not stopped: {error.details()}", file=sys.stderr)
        return
    status = session.status
    state = rpc.Session.State.Name(status.state)
    print(f"session {session_id}: {state}, {status.records} records in {status.dump_path}")


def train_step():
    time.sleep(0.05)


def main():
    session = None
    with rpc.connect() as daemon:
        for step in range(20):
            if step == 5:
                session = start_profile(daemon)
            train_step()
            if step == 15 and session:
                stop_profile(daemon, session.session_id)
    print("20 steps")


if __name__ == "__main__":
    main()
