"""The daemon's calls over gRPC, for training processes and tools; docs/api.md has when to use which.

    from profd import rpc

    with rpc.connect() as daemon:
        session = daemon.StartSession(rpc.StartSessionRequest(spec={"schedule": {"duration_ms": 5000}}), timeout=60)

Every message and the stubs of the three services are those that protoc generates of profd/v1/profd.proto; a
connection has the calls of all of them. Needs grpcio and protobuf.
"""

from __future__ import annotations

import os
from types import TracebackType
from typing import List, Optional, Type

try:
    import grpc

    from .v1.options_pb2 import *
    from .v1.profd_pb2 import *
    from .v1.profd_pb2_grpc import DumpServiceStub as DumpServiceStub
    from .v1.profd_pb2_grpc import NodeServiceStub as NodeServiceStub
    from .v1.profd_pb2_grpc import SessionServiceStub as SessionServiceStub
except ImportError as error:
    raise ImportError(f"profd.rpc needs grpcio and protobuf 3.20 or newer (Debian: python3-grpcio, python3-protobuf): "
                      f"{error}") from error

DEFAULT_SOCKET = "/run/profd/profd.sock"
STATUS_DETAILS = "grpc-status-details-bin"


class Connection(NodeServiceStub, SessionServiceStub, DumpServiceStub):
    """The daemon's calls on one channel, which close() or the end of a `with` block closes."""

    def __init__(self, channel: grpc.Channel) -> None:
        NodeServiceStub.__init__(self, channel)
        SessionServiceStub.__init__(self, channel)
        DumpServiceStub.__init__(self, channel)
        self._channel = channel

    def close(self) -> None:
        self._channel.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()


def connect(socket: Optional[str] = None) -> Connection:
    """This node's daemon, by its unix socket: `socket`, else $PROFD_SOCKET, else /run/profd/profd.sock.

    Connects with the first call; a daemon that is not there is that call's error.
    """
    path = socket or os.environ.get("PROFD_SOCKET") or DEFAULT_SOCKET
    # The node's topology and long lists may exceed gRPC's 4 MiB.
    return Connection(grpc.insecure_channel(f"unix:{path}", [("grpc.max_receive_message_length", 64 << 20)]))


def problems(error: grpc.RpcError) -> List[Problem]:
    """What was wrong with the request of a refused call: kind, field, value, text. Empty if its status does not list
    it; error.details() has the same as one text.
    """
    found = []
    for key, value in error.trailing_metadata() or ():
        if key != STATUS_DETAILS:
            continue
        for detail in StatusDetails.FromString(value).details:
            if detail.Is(Problems.DESCRIPTOR):
                found.extend(Problems.FromString(detail.value).problems)
    return found
