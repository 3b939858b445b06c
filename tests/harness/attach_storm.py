"""Many processes on the attach socket, each with a ring, until they are ended."""

import json
import os
import subprocess
import sys
import traceback

from attach_client import Client, Ring


class Storm:
    """A process for each of the hellos; returns when all have attached and made five steps. `leaving`: every third
    ends then, with a farewell."""

    def __init__(self, path, hellos, leaving=False):
        self.process = subprocess.Popen([sys.executable, os.path.abspath(__file__), path, json.dumps([hellos, leaving])],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        seen = 0
        while seen < len(hellos):
            data = os.read(self.process.stdout.fileno(), 65536)
            if not data or b"!" in data:
                self.end()
                why = data[data.find(b"!") + 1:].decode(errors="replace") if data else "all have ended"
                raise AssertionError(f"a process could not attach, after {seen} of {len(hellos)}: {why}")
            seen += len(data)

    def end(self):
        """Everything at once, by the kernel's hand: no farewell."""
        self.process.communicate()


def train(path, hello, leaves):
    ring = Ring(256)
    while True:
        try:
            client = Client(path).attach(ring, **hello)
            break
        except AssertionError as error:
            # On a busy machine a process may be too late; libprofd tries again, too.
            if "no hello in time" not in str(error):
                raise
    for step in range(5):
        ring.step(step)
    os.write(1, b"x")
    if leaves:
        client.bye()
        return
    client.socket.settimeout(None)
    while client.receive() is not None:
        pass


def main():
    path, (hellos, leaving) = sys.argv[1], json.loads(sys.argv[2])
    children = []
    for i, hello in enumerate(hellos):
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                train(path, hello, leaving and i % 3 == 0)
                code = 0
            except BaseException:
                os.write(1, b"!" + traceback.format_exc().encode()[-2000:])
            finally:
                os._exit(code)
        children.append(pid)
    sys.stdin.read()
    for pid in children:
        os.kill(pid, 9)
    for pid in children:
        os.waitpid(pid, 0)


if __name__ == "__main__":
    main()
