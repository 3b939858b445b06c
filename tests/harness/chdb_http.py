#!/usr/bin/env python3
"""usage: chdb_http.py LIBCHDB FOLDER PORT

ClickHouse's HTTP interface, as far as profctl and the tests need it, over the engine of a present release: LIBCHDB is libchdb.so
(chDB), which is that engine as a library, without the server. One statement at a time; users, TLS and clusters are the server's and
are not here. Tables are kept in FOLDER.
"""

import ctypes
import http.server
import re
import sys
import threading
import urllib.parse

POINTER, SIZE = ctypes.c_void_p, ctypes.c_size_t
SIGNATURES = {
    "chdb_connect": (POINTER, [ctypes.c_int, ctypes.POINTER(ctypes.c_char_p)]),
    "chdb_query_n": (POINTER, [POINTER, ctypes.c_char_p, SIZE, ctypes.c_char_p, SIZE]),
    "chdb_result_buffer": (POINTER, [POINTER]),
    "chdb_result_length": (SIZE, [POINTER]),
    "chdb_result_error": (ctypes.c_char_p, [POINTER]),
    "chdb_destroy_query_result": (None, [POINTER]),
}


class Engine:
    def __init__(self, library, folder):
        self.chdb = ctypes.CDLL(library)
        for name, (result, arguments) in SIGNATURES.items():
            function = getattr(self.chdb, name)
            function.restype, function.argtypes = result, arguments
        arguments = [b"clickhouse", f"--path={folder}".encode()]
        connection = self.chdb.chdb_connect(len(arguments), (ctypes.c_char_p * len(arguments))(*arguments))
        if not connection:
            raise SystemExit(f"chdb_http: {library} does not open {folder}")
        self.connection = POINTER.from_address(connection)
        self.lock = threading.Lock()

    def ask(self, statement, rows=b""):
        """(answer, None) or (None, the engine's words)."""
        # As the server takes them: rows of an INSERT behind a line break.
        text = statement + (b"\n" + rows if rows else b"")
        with self.lock:
            result = self.chdb.chdb_query_n(self.connection, text, len(text), b"TabSeparated", 12)
            try:
                error = self.chdb.chdb_result_error(result)
                if error:
                    return None, error
                return ctypes.string_at(self.chdb.chdb_result_buffer(result), self.chdb.chdb_result_length(result)), None
            finally:
                self.chdb.chdb_destroy_query_result(result)


def handler_of(engine):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self, status, body):
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self):
            self.answer(200, b"Ok.\n")

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query).get("query", [""])[0].encode()
            result, error = engine.ask(query, body) if query else engine.ask(body)
            if error is None:
                return self.answer(200, result)
            # As the server begins its errors.
            code = re.match(rb"Code: \d+", error)
            return self.answer(404 if code and code[0] in (b"Code: 60", b"Code: 81") else 500, error)

        def log_message(self, format, *arguments):
            pass

    return Handler


def main():
    if len(sys.argv) != 4:
        raise SystemExit(__doc__.splitlines()[0])
    engine = Engine(sys.argv[1], sys.argv[2])
    http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[3])), handler_of(engine)).serve_forever()


if __name__ == "__main__":
    main()
