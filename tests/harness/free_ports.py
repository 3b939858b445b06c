"""Ports of this machine for servers that cannot choose one themselves."""

import contextlib
import random
import socket

from text_files import read_text


def free_ports(count):
    """Ports that are free now. They are below those that the kernel gives to connections and to listeners without a port, so
    that neither has one by the time its server starts."""
    first = int(read_text("/proc/sys/net/ipv4/ip_local_port_range").split()[0])
    ports = []
    with contextlib.ExitStack() as stack:
        while len(ports) < count:
            one = stack.enter_context(socket.socket())
            with contextlib.suppress(OSError):
                one.bind(("127.0.0.1", random.randrange(10_000, first) if first > 12_000 else 0))
                ports.append(one.getsockname()[1])
    return ports
