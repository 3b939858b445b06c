"""ClickHouse on loopback ports and in a directory of its own: one server, or two shards of two replicas with a ZooKeeper."""

import base64
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.error
import urllib.parse
import urllib.request

from free_ports import free_ports
from profd_harness import eventually, memory_root
from text_files import write_text

SERVER = "/usr/sbin/clickhouse-server"
ZOOKEEPER = "/usr/share/java/zookeeper.jar"
# The engine of a present release instead of Debian's server (scripts/test-clickhouse).
LIBCHDB = os.environ.get("PROFD_LIBCHDB")
USER, PASSWORD = "loader", "a secret/with: signs"
CLUSTER = "two"


def missing():
    """Why no server can be started here; None: one can."""
    return None if LIBCHDB or os.path.exists(SERVER) else f"{SERVER} is not installed (scripts/install-deps --for test)"


def missing_server():
    """Why nothing that only a server has (users, TLS, clusters) can be tried here; None: it can."""
    return "the engine alone is tried" if LIBCHDB else missing()


def missing_zookeeper():
    return None if os.path.exists(ZOOKEEPER) and shutil.which("java") else "no ZooKeeper (scripts/install-deps --for test)"


needs_engine = unittest.skipIf(missing(), missing())
needs_server = unittest.skipIf(missing_server(), missing_server())
needs_zookeeper = unittest.skipIf(missing_zookeeper(), missing_zookeeper())


def started(test, folder, **how):
    """A server until this test, or this class of tests, has ended."""
    server = ClickHouse(os.path.join(folder, "server"), **how)
    (test.addClassCleanup if isinstance(test, type) else test.addCleanup)(server.kill)
    return server.start()


USERS = f"""<yandex>
<profiles><default><max_memory_usage>3000000000</max_memory_usage></default><viewer><readonly>1</readonly></viewer></profiles>
<users>
  <default><password></password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></default>
  <viewer><password></password><networks><ip>127.0.0.1</ip></networks><profile>viewer</profile><quota>default</quota></viewer>
  <{USER}><password>{PASSWORD}</password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></{USER}>
</users>
<quotas><default></default></quotas>
</yandex>
"""


class ClickHouse:
    """One server. `more`: further elements of its configuration."""

    def __init__(self, folder, ports=None, more=""):
        self.folder = folder
        # Servers of 18.16 that replicate among each other crash there.
        self.memory = None if ports else tempfile.TemporaryDirectory(prefix="profd-clickhouse-", dir=memory_root())
        self.data = self.memory.name if self.memory else f"{folder}/data"
        self.http, self.tcp, self.interserver = ports or free_ports(3)
        self.more = more
        self.process = None

    def start(self):
        os.makedirs(self.folder, exist_ok=True)
        command = [sys.executable, os.path.join(os.path.dirname(__file__), "chdb_http.py"), LIBCHDB, self.data, str(self.http)]
        if not LIBCHDB:
            self.configure()
            command = [SERVER, f"--config-file={self.folder}/config.xml"]
        with open(os.path.join(self.folder, "output"), "ab") as output:
            self.process = subprocess.Popen(command, stdout=output, stderr=output, cwd=self.folder)
        eventually(self.answers, seconds=60, what=f"ClickHouse answers; {self.folder}/errors.log has the reason", every=0.1)
        return self

    def configure(self):
        files = {"users.xml": USERS, "config.xml": f"""<yandex>
<logger><level>warning</level><log>{self.folder}/server.log</log><errorlog>{self.folder}/errors.log</errorlog></logger>
<http_port>{self.http}</http_port><tcp_port>{self.tcp}</tcp_port>
<interserver_http_port>{self.interserver}</interserver_http_port><interserver_http_host>127.0.0.1</interserver_http_host>
<listen_host>127.0.0.1</listen_host><path>{self.data}/</path><tmp_path>{self.data}/tmp/</tmp_path>
<users_config>{self.folder}/users.xml</users_config><default_profile>default</default_profile><default_database>default</default_database>
<mark_cache_size>67108864</mark_cache_size><max_concurrent_queries>100</max_concurrent_queries>
{self.more}
</yandex>
"""}
        for name, text in files.items():
            write_text(os.path.join(self.folder, name), text)

    def answers(self):
        if self.process.poll() is not None:
            raise AssertionError(f"ClickHouse ended with {self.process.returncode}: " + self.log())
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.http}/", timeout=2) as answer:
                return answer.read() == b"Ok.\n"
        except OSError:
            return False

    def log(self):
        text = ""
        for name in ("output", "errors.log"):
            with contextlib.suppress(OSError), open(os.path.join(self.folder, name), encoding="utf-8", errors="replace") as file:
                text += file.read()[-3000:]
        return text

    def stop(self):
        if self.process is None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.kill()
        self.process = None

    def kill(self):
        """For good: an orderly end takes seconds, for files that are removed next."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(20)
            self.process = None

    def ask(self, statement):
        """The answer as text; AssertionError with the server's words."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.http}/", statement.encode(), {
            "Authorization": "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{statement}: {error.read().decode(errors='replace')}") from error

    def rows(self, select):
        return json.loads(self.ask(select + " FORMAT JSONCompact"))["data"]

    def number(self, select):
        return int(self.ask(select))

    def url(self, database="profiles", port=None, password=PASSWORD, scheme="clickhouse", host="127.0.0.1"):
        return f"{scheme}://{USER}:{urllib.parse.quote(password, safe='')}@{host}:{port or self.http}/{database}"


class ZooKeeper:
    def __init__(self, folder):
        self.folder, self.port, self.process = folder, free_ports(1)[0], None

    def start(self):
        os.makedirs(self.folder, exist_ok=True)
        path = os.path.join(self.folder, "zoo.cfg")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"tickTime=2000\ndataDir={self.folder}/data\nclientPort={self.port}\nclientPortAddress=127.0.0.1\n"
                       "admin.enableServer=false\nmaxClientCnxns=100\n")
        with open(os.path.join(self.folder, "output"), "wb") as output:
            # Nothing of it has to survive the machine: it need not wait for the disk.
            self.process = subprocess.Popen(["java", "-Xmx256m", "-Dzookeeper.forceSync=no", "-cp", "/usr/share/java/*",
                                             "org.apache.zookeeper.server.ZooKeeperServerMain", path], stdout=output, stderr=output)
        return self

    def listens(self):
        with contextlib.closing(socket.socket()) as probe:
            probe.settimeout(1)
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def stop(self):
        self.process.kill()
        self.process.wait(20)


class Cluster:
    """Two shards of two replicas."""

    def __init__(self, folder):
        self.zookeeper = ZooKeeper(os.path.join(folder, "zookeeper")).start()
        ports = [free_ports(3) for _ in range(4)]
        shards = "".join("<shard><internal_replication>true</internal_replication>" + "".join(
            f"<replica><host>127.0.0.1</host><port>{ports[shard * 2 + replica][1]}</port></replica>" for replica in (0, 1)) + "</shard>"
            for shard in (0, 1))
        self.nodes = []
        eventually(self.zookeeper.listens, seconds=60, what="ZooKeeper listens", every=0.1)
        for number, its in enumerate(ports):
            more = (f"<zookeeper><node><host>127.0.0.1</host><port>{self.zookeeper.port}</port></node></zookeeper>"
                    f"<macros><shard>{number // 2}</shard><replica>{number}</replica></macros>"
                    "<distributed_ddl><path>/clickhouse/task_queue/ddl</path></distributed_ddl>"
                    f"<remote_servers><{CLUSTER}>{shards}</{CLUSTER}></remote_servers>")
            self.nodes.append(ClickHouse(os.path.join(folder, f"node{number}"), its, more))
        with contextlib.ExitStack() as stack:
            stack.callback(self.stop)
            for node in self.nodes:
                node.start()
            stack.pop_all()

    def stop(self):
        for node in self.nodes:
            node.kill()
        self.zookeeper.stop()


class Gate:
    """A proxy in front of a server: after `statements` connections it holds (or closes) all further ones."""

    def __init__(self, port, statements, close=False):
        self.target, self.left, self.close_them = port, statements, close
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.held, self.stopped = threading.Event(), False
        self.kept = []
        self.thread = threading.Thread(target=self._accept, daemon=True)
        self.thread.start()

    def _accept(self):
        while not self.stopped:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            if self.left <= 0:
                self.held.set()
                if self.close_them:
                    client.close()
                else:
                    self.kept.append(client)
                continue
            self.left -= 1
            server = socket.create_connection(("127.0.0.1", self.target))
            self.kept += [client, server]
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=self._copy, args=(source, sink), daemon=True).start()

    @staticmethod
    def _copy(source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    def stop(self):
        if self.stopped:
            return
        self.stopped = True
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for each in self.kept:
            each.close()
