"""A gRPC call written by hand, so that a test can send what no client library would."""

import contextlib
import select
import socket
import struct
import time

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM, END_HEADERS, ACK = 1, 4, 1
MAX_CONCURRENT, INITIAL_WINDOW = 3, 4


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


class Crowd:
    """Many calls at once over as few connections as the server's limit of calls allows, of which no answer is
    read: the client's window is empty. `ended`: calls the server has ended, `texts`: the fields they ended with.
    `window`: bytes of each answer that are taken; None = all, and what was taken is counted in `taken`."""

    PER_CONNECTION = 60

    def __init__(self, dial, window=0):
        self.dial, self.window, self.links = dial, window, []
        self.open, self.ended, self.taken, self.texts = 0, 0, 0, []

    def call(self, path, message, calls=1):
        head = fields((":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "localhost"),
                      ("te", "trailers"), ("content-type", "application/grpc"))
        body = struct.pack(">BI", 0, len(message)) + message
        for _ in range(calls):
            if not self.links or self.links[-1]["calls"] == self.PER_CONNECTION:
                self._connect()
            link = self.links[-1]
            stream = 2 * link["calls"] + 1
            link["calls"] += 1
            link["raw"].sendall(frame(HEADERS, END_HEADERS, stream, head) + frame(DATA, END_STREAM, stream, body))
            self.open += 1

    def _connect(self):
        raw = self.dial()
        window = 0x7FFFFFFF if self.window is None else self.window
        raw.sendall(PREFACE + frame(SETTINGS, 0, 0, struct.pack(">HI", INITIAL_WINDOW, window))
                    + frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 0x7FFF0000)))
        self.links.append({"raw": raw, "calls": 0, "rest": b""})

    def until(self, condition, seconds):
        """Takes what comes until condition(self); whether it came to that."""
        end = time.monotonic() + seconds
        while not condition(self):
            ready, _, _ = select.select([link["raw"] for link in self.links], [], [], max(0, end - time.monotonic()))
            if not ready:
                return False
            for link in self.links:
                if link["raw"] in ready:
                    self._take(link)
        return True

    def _take(self, link):
        part = link["raw"].recv(1 << 20)
        if not part:
            raise ConnectionError("the connection has ended")
        rest = link["rest"] + part
        while len(rest) >= 9 and len(rest) >= 9 + int.from_bytes(rest[:3], "big"):
            size = int.from_bytes(rest[:3], "big")
            kind, flags, _ = struct.unpack(">BBI", rest[3:9])
            body, rest = rest[9:9 + size], rest[9 + size:]
            if kind == SETTINGS and not flags & ACK:
                link["raw"].sendall(frame(SETTINGS, ACK, 0))
            elif kind == PING and not flags & ACK:
                link["raw"].sendall(frame(PING, ACK, 0, body))
            elif kind == DATA:
                self.taken += len(body)
                if self.window is None:
                    link["raw"].sendall(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", max(len(body), 1))))
            elif kind == HEADERS and flags & END_STREAM:
                self.ended += 1
                self.texts.append(body.decode("latin-1"))
            elif kind == RST_STREAM:
                self.ended += 1
        link["rest"] = rest

    def close(self):
        for link in self.links:
            link["raw"].close()


def settings_of(raw):
    """{number: value} of the server's first SETTINGS frame on a connected socket."""
    raw.sendall(PREFACE + frame(SETTINGS, 0, 0))
    data = b""
    while len(data) < 9 or len(data) < 9 + int.from_bytes(data[:3], "big"):
        part = raw.recv(65536)
        if not part:
            raise ConnectionError("the connection has ended")
        data += part
    if data[3] != SETTINGS:
        raise ConnectionError("no SETTINGS at first")
    body = data[9:9 + int.from_bytes(data[:3], "big")]
    return dict(struct.unpack_from(">HI", body, at) for at in range(0, len(body), 6))
