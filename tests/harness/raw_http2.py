"""A gRPC call written by hand, so that a test can send what no client library would."""

import contextlib
import socket
import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM, END_HEADERS, ACK = 1, 4, 1
INITIAL_WINDOW = 4


def frame(kind, flags, stream, body=b""):
    return struct.pack(">I", len(body))[1:] + struct.pack(">BBI", kind, flags, stream) + body


def fields(*pairs):
    """HPACK: literals that are not indexed."""
    def text(value):
        return bytes([len(value)]) + value.encode()
    return b"".join(b"\0" + text(name) + text(value) for name, value in pairs)


class Connection:
    """One HTTP/2 connection over a connected socket. One call at a time."""

    def __init__(self, raw):
        self.raw, self.stream, self.window, self.initial, self.rest = raw, -1, 65535, 65535, b""
        self.raw.sendall(PREFACE + frame(SETTINGS, 0, 0))

    def _frames(self):
        """What has come, frame by frame; waits where there is none yet. An error at the end of the connection."""
        while len(self.rest) < 9 or len(self.rest) < 9 + int.from_bytes(self.rest[:3], "big"):
            part = self.raw.recv(65536)
            if not part:
                raise ConnectionError("the connection has ended")
            self.rest += part
        while len(self.rest) >= 9:
            size = int.from_bytes(self.rest[:3], "big")
            if len(self.rest) < 9 + size:
                return
            kind, flags, stream = struct.unpack(">BBI", self.rest[3:9])
            body, self.rest = self.rest[9:9 + size], self.rest[9 + size:]
            yield kind, flags, stream & 0x7FFFFFFF, body

    def call(self, path, message, compressed=True, encoding="gzip"):
        """The frames that answer a call with one message, until its end; the bytes of the server."""
        self.stream += 2
        self.raw.sendall(frame(HEADERS, END_HEADERS, self.stream, fields(
            (":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "localhost"),
            ("te", "trailers"), ("content-type", "application/grpc"), ("grpc-encoding", encoding))))
        waiting = struct.pack(">BI", int(compressed), len(message)) + message
        window, answer = self.initial, []
        while True:
            while waiting and min(window, self.window) > 0:
                part = waiting[:min(16384, window, self.window)]
                waiting = waiting[len(part):]
                window, self.window = window - len(part), self.window - len(part)
                self.raw.sendall(frame(DATA, 0 if waiting else END_STREAM, self.stream, part))
            for kind, flags, stream, body in self._frames():
                if kind == WINDOW_UPDATE:
                    more = int.from_bytes(body, "big")
                    if stream == 0:
                        self.window += more
                    elif stream == self.stream:
                        window += more
                elif kind == SETTINGS and not flags & ACK:
                    for at in range(0, len(body), 6):
                        key, value = struct.unpack_from(">HI", body, at)
                        if key == INITIAL_WINDOW:
                            window, self.initial = window + value - self.initial, value
                    self.raw.sendall(frame(SETTINGS, ACK, 0))
                elif kind == PING and not flags & ACK:
                    self.raw.sendall(frame(PING, ACK, 0, body))
                elif kind == GOAWAY:
                    raise ConnectionError(f"the server goes away: {body[8:]}")
                elif stream == self.stream and kind in (DATA, HEADERS, RST_STREAM):
                    answer.append((kind, body))
                    if kind == RST_STREAM or flags & END_STREAM:
                        return answer


def connect(path):
    raw = socket.socket(socket.AF_UNIX)
    raw.connect(path)
    return contextlib.closing(raw)
