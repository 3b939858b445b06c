#!/usr/bin/env python3
"""usage: rank.py SOCKET JOB RANK DEVICE

One rank of a job that does nothing: attaches, and marks a step every tenth of a second until it is ended.
"""

import sys
import time

from attach_client import PUSH, POP, STEP_BEGIN, STEP_END, Client, Ring


def main(path, job, rank, device):
    ring = Ring()
    with Client(path) as client:
        client.attach(ring, job_id=job, rank=int(rank), devices=[int(device)], framework="example")
        step = 0
        while True:
            step += 1
            ring.put(STEP_BEGIN, value=step)
            ring.put(PUSH, "forward")
            time.sleep(0.1)
            ring.put(POP)
            ring.put(STEP_END, value=step)


if __name__ == "__main__":
    main(*sys.argv[1:])
