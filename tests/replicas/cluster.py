"""Starts Redis, PostgreSQL, nginx and several replicas of Toolyard on loopback ports, and ends all of them.

    with Cluster(home, yard="demo = true\\n") as cluster:
        cluster.start()
        cluster.replicas[0].kill()

Every process belongs to its object, which ends it by its ID. `Cluster.close`, which the `with` statement also calls after
an exception or Ctrl-C, ends whatever still runs.
"""

import contextlib
import http.client
import itertools
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from urllib.parse import urlparse

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from harness import processes
from harness.debian import require_program

# A heartbeat is sent every second, and a replica counts as dead three seconds after its last one.
DEAD_SECONDS = 3
START_SECONDS = 60
STOP_SECONDS = 45
KEYS = ["the first secret of these tests, 0123456789abcdef", "the second secret of these tests, 0123456789abcde"]


class NotStarted(Exception):
    """A process ended or did not become ready in time. The message has the end of its log."""


class Daemon:
    """A process with a log file. Subclasses say how it is started and when it is ready."""

    name = "daemon"

    def __init__(self, home, port=None):
        self.home, self.port = home, port or free_port()
        self.process = None
        self.home.mkdir(parents=True, exist_ok=True)

    @property
    def pid(self):
        return self.process.pid

    @property
    def log_file(self):
        return self.home / f"{self.name}.log"

    def log(self):
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    def is_running(self):
        return self.process is not None and self.process.poll() is None

    def start(self, **options):
        """Starts the process without waiting until it is ready. Its log is appended to that of the previous run."""
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(
                self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.home, **options
            )
        return self

    def command(self):
        raise NotImplementedError

    def is_ready(self):
        return accepts(self.port)

    def wait(self, seconds=START_SECONDS):
        """Waits until the process is ready."""
        deadline = time.monotonic() + seconds
        while not self.is_ready():
            if not self.is_running():
                raise NotStarted(f"{self.name} ended with {self.process.returncode}: {self.log()[-2000:]}")
            if time.monotonic() > deadline:
                raise NotStarted(f"{self.name} is not ready after {seconds} s: {self.log()[-2000:]}")
            time.sleep(0.05)
        return self

    def signal(self, number):
        self.process.send_signal(number)

    def pause(self):
        self.signal(signal.SIGSTOP)

    def resume(self):
        self.signal(signal.SIGCONT)

    def kill(self):
        """Ends the process as a power failure would."""
        if self.is_running():
            self.process.kill()
        self.process.wait()

    def stop(self, seconds=STOP_SECONDS):
        """Ends the process with SIGTERM. Returns the exit code, or `None` if it had to be killed."""
        if not self.is_running():
            return self.process and self.process.returncode
        self.resume()
        self.process.terminate()
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            return None


class Redis(Daemon):
    """A Redis server without persistence: a restart loses everything."""

    name = "redis"

    def __init__(self, home, port=None):
        require_program("redis-server")
        super().__init__(home, port)

    @property
    def url(self):
        return f"redis://127.0.0.1:{self.port}/0"

    def command(self):
        options = {"port": self.port, "bind": "127.0.0.1", "save": "", "appendonly": "no", "dir": self.home}
        options["enable-debug-command"] = "local"
        return ["redis-server", *(word for key, value in options.items() for word in (f"--{key}", str(value)))]

    def is_ready(self):
        try:
            return self.ask("PING") == "PONG"
        except OSError:
            return False

    def ask(self, *words):
        """Sends a command and returns the answer: a string, a number, a list, or `None`."""
        with socket.create_connection(("127.0.0.1", self.port), 5) as connection:
            encoded = [str(word).encode() for word in words]
            request = b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in encoded)
            connection.sendall(b"*%d\r\n%s" % (len(encoded), request))
            with connection.makefile("rb") as answer:
                return read_redis(answer)

    def keys(self, pattern="*"):
        return sorted(self.ask("KEYS", pattern))

    def flush(self):
        self.ask("FLUSHALL")


def read_redis(answer):
    line = answer.readline().rstrip(b"\r\n").decode()
    kind, rest = line[:1], line[1:]
    if kind == "-":
        raise OSError(rest)
    if kind == ":":
        return int(rest)
    if kind == "$":
        if rest == "-1":
            return None
        return answer.read(int(rest) + 2)[:-2].decode(errors="replace")
    if kind == "*":
        return None if rest == "-1" else [read_redis(answer) for _ in range(int(rest))]
    if not kind:
        raise OSError("Redis closed the connection")
    return rest


class Link:
    """A TCP relay to a port, so that one replica can lose a store that the others still reach. Runs in threads.
    `delay_seconds` is how long it holds every piece of data that it passes on."""

    def __init__(self, target):
        self.target, self.port, self.is_cut, self.open = target, free_port(), False, set()
        self.delay_seconds = 0
        self.listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self):
        """Closes all connections, and new ones immediately."""
        self.is_cut = True
        for each in list(self.open):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def restore(self):
        self.is_cut = False

    def close(self):
        self.cut()
        # Wakes the thread that accepts; closing alone does not.
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def _accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return  # `close`
            try:
                far = None if self.is_cut else socket.create_connection(("127.0.0.1", self.target), 5)
            except OSError:
                far = None
            if not far:
                near.close()
                continue
            self.open |= {near, far}
            for source, sink in ((near, far), (far, near)):
                source.settimeout(None)
                threading.Thread(target=self._copy, args=(source, sink), daemon=True).start()

    def _copy(self, source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                time.sleep(self.delay_seconds)
                sink.sendall(data)
        for each in (source, sink):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
            self.open.discard(each)


class Postgres(Daemon):
    """A new PostgreSQL server with the user and database `toolyard`. Connections need a password only if there is one."""

    name = "postgres"

    def __init__(self, home, port=None, password=None):
        super().__init__(home, port)
        self.password = password
        self.programs = postgres_programs()
        self.data = self.home / "data"
        # PostgreSQL refuses to run as root.
        self.user = pwd.getpwnam("postgres") if os.geteuid() == 0 else None

    @property
    def url(self):
        return f"postgres://toolyard@127.0.0.1:{self.port}/toolyard"

    def owner(self):
        return {"user": self.user.pw_uid, "group": self.user.pw_gid, "extra_groups": []} if self.user else {}

    def start(self):
        if not self.data.exists():
            self.data.mkdir(mode=0o700)
            if self.user:
                os.chown(self.data, self.user.pw_uid, self.user.pw_gid)
                for folder in [self.home, *self.home.parents]:
                    # The temporary folder of a test belongs to root alone.
                    if folder.stat().st_uid == os.geteuid() and not folder.stat().st_mode & 0o001:
                        folder.chmod(folder.stat().st_mode | 0o011)
            initdb = [self.programs / "initdb", "--pgdata", self.data, "--username", "toolyard", "--no-sync"]
            access = ["--auth", "trust"]
            if self.password:
                file = self.home / "password"
                file.write_text(self.password)
                file.chmod(0o644)
                access = ["--auth", "scram-sha-256", "--pwfile", file]
            done = subprocess.run([*initdb, *access], capture_output=True, text=True, cwd=self.data, **self.owner())
            if done.returncode:
                raise NotStarted(f"initdb ended with {done.returncode}: {done.stderr}")
        super().start(**self.owner())
        return self

    def command(self):
        # Files in the data folder, because the log belongs to the user of this process.
        settings = {"listen_addresses": "127.0.0.1", "port": self.port, "unix_socket_directories": self.data, "fsync": "off"}
        words = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
        return [self.programs / "postgres", "-D", self.data, *words]

    def wait(self, seconds=START_SECONDS):
        super().wait(seconds)
        if self.query("select 1 from pg_database where datname = 'toolyard'", "postgres") != "1":
            self.query("create database toolyard", "postgres")
        return self

    def is_ready(self):
        if not accepts(self.port):
            return False
        return self.psql("select 1", "postgres").returncode == 0

    def psql(self, sql, database="toolyard"):
        words = ["psql", "--no-psqlrc", "--tuples-only", "--no-align", "--host", "127.0.0.1", "--port", str(self.port)]
        env = {**os.environ, "PGPASSWORD": self.password or ""}
        return subprocess.run(
            [*words, "--username", "toolyard", "--command", sql, database], capture_output=True, text=True, env=env
        )

    def query(self, sql, database="toolyard"):
        """Returns what `psql` prints: a line for each row, columns separated by `|`."""
        done = self.psql(sql, database)
        if done.returncode:
            raise OSError(done.stderr)
        return done.stdout.strip()

    def signal(self, number):
        """Pauses and resumes the server with its processes for connections."""
        for pid in [*descendants(self.pid), self.pid] if number in (signal.SIGSTOP, signal.SIGCONT) else [self.pid]:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass  # the connection was closed


def postgres_programs():
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    if not found:
        require_program("pg_ctlcluster", "postgresql")
        found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    require_program("psql", "postgresql-client")
    return found[-1].parent if found else sys.exit("the package postgresql has no server")


class Nginx(Daemon):
    """A load balancer that sends each request to the next replica, without affinity."""

    name = "nginx"

    def __init__(self, home, replicas, port=None):
        require_program("nginx")
        super().__init__(home, port)
        self.replicas = replicas

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def command(self):
        servers = "\n".join(f"    server 127.0.0.1:{each.port} max_fails=1 fail_timeout=1s;" for each in self.replicas)
        temp = "\n".join(f"  {kind}_temp_path {self.home}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        config = self.home / "nginx.conf"
        # The temporary folder is closed to the user that workers of root have by default.
        user = "user root;" if os.geteuid() == 0 else ""
        config.write_text(f"""{user} worker_processes 1; daemon off; pid {self.home}/nginx.pid; error_log {self.home}/error.log;
events {{ worker_connections 2048; }}
http {{
{temp}
  log_format replicas '$request_method $request_uri $status $upstream_addr $upstream_status $request_time';
  access_log {self.home}/access.log replicas;
  upstream yard {{
{servers}
  }}
  server {{
    listen 127.0.0.1:{self.port};
    client_max_body_size 16m;
    location / {{
      proxy_pass http://yard;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $http_host;
      proxy_buffering off;
      proxy_request_buffering on;
      proxy_connect_timeout 2s;
      proxy_read_timeout 1h;
      proxy_send_timeout 1h;
      # A request is repeated only if no replica has received it.
      proxy_next_upstream error timeout;
      proxy_next_upstream_timeout 10s;
    }}
  }}
}}
""")
        return ["nginx", "-c", str(config), "-p", str(self.home)]

    def kill(self):
        """Kills the workers, too. They do not end with their parent."""
        workers = descendants(self.pid) if self.is_running() else []
        super().kill()
        for pid in workers:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


class Replica(Daemon):
    """One `toolyard serve` process. It keeps its name and its address when it is started again."""

    def __init__(self, home, binary, number, config, arguments=(), env=None, port=None):
        self.name, self.number = f"replica-{number}", number
        super().__init__(home, port)
        self.binary, self.config, self.arguments = binary, config, list(arguments)
        self.env = dict(env or {})
        # What the last start printed on standard output.
        self.announced = None

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def command(self):
        listen = ["--listen", f"127.0.0.1:{self.port}"]
        return [self.binary, "serve", *listen, "--json", *self.arguments, "--config", self.config]

    def start(self, **env):
        """Starts the replica. The arguments are environment variables of this run."""
        names = {"REPLICA_NAME": self.name, "REPLICA_URL": self.url, "REPLICA_NUMBER": str(self.number)}
        return super().start(env=processes.environment(self.home, **{**names, **self.env, **env}))

    def is_ready(self):
        try:
            return self.get("/ready", seconds=2)[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    def get(self, path, token=None, seconds=10):
        """Returns the status and the parsed body of a GET request to this replica."""
        return get(self.url, path, token or self.env.get("TOOLYARD_TOKEN"), seconds)

    def restart(self, **env):
        """Stops the replica as a rolling update does, and waits until the new process is ready."""
        code = self.stop()
        self.start(**env).wait()
        return code


class Cluster:
    """Replicas that read one configuration file, with their stores and, if requested, nginx.

    `yard` is the content of the file without `[cluster]`. `cluster_keys` overrides keys of `[cluster]`; `None` omits one.
    `replica_env` maps the number of a replica to environment variables of that replica only.
    """

    def __init__(
        self, home, yard, count=3, auth="none", token=None, nginx=True, postgres=False, binary=None, cluster_keys=None,
        replica_env=None, arguments=(),
    ):
        self.home, self.yard, self.auth, self.token = Path(home), yard, auth, token
        self.home.mkdir(parents=True, exist_ok=True)
        self.redis = Redis(self.home / "redis")
        self.postgres = Postgres(self.home / "postgres") if postgres else None
        self.config = self.home / "toolyard.toml"
        self.cluster_keys = cluster_keys or {}
        self.write_config()
        env = {"TOOLYARD_TOKEN": token} if token else {}
        binary = binary or processes.binary()
        self.replicas = [
            Replica(
                self.home / f"replica-{number}", binary, number, self.config, ["--auth", auth, *arguments],
                {**env, **(replica_env or {}).get(number, {})},
            )
            for number in range(1, count + 1)
        ]
        self.nginx = Nginx(self.home / "nginx", self.replicas) if nginx else None

    def write_config(self, yard=None, **cluster_keys):
        """Writes the configuration file. Running replicas reload what can be reloaded."""
        self.yard = self.yard if yard is None else yard
        self.cluster_keys.update(cluster_keys)
        keys = {"redis": self.redis.url, "keys": KEYS[:1], "advertise": "${REPLICA_URL}", "name": "${REPLICA_NAME}"}
        if self.postgres:
            keys["postgres"] = self.postgres.url
        keys.update(self.cluster_keys)
        lines = [f"{key} = {json.dumps(value)}" for key, value in keys.items() if value is not None]
        # Top-level keys come first in TOML.
        new = self.home / "toolyard.toml.new"
        new.write_text(self.yard.rstrip() + "\n\n[cluster]\n" + "\n".join(lines) + "\n")
        new.replace(self.config)

    @property
    def url(self):
        """The address of the load balancer, or of the first replica if there is none."""
        return self.nginx.url if self.nginx else self.replicas[0].url

    @property
    def daemons(self):
        return [each for each in (self.nginx, *self.replicas, self.redis, self.postgres) if each]

    def start(self):
        """Starts everything and waits until all of it is ready and every replica lists the others."""
        for store in (self.redis, self.postgres):
            if store:
                store.start().wait()
        for replica in self.replicas:
            replica.start()
        for replica in self.replicas:
            replica.wait()
        if self.nginx:
            self.nginx.start().wait()
        self.wait_until_joined()
        return self

    def wait_until_joined(self, seconds=10):
        """Waits until every running replica lists exactly the running ones."""
        running = [each for each in self.replicas if each.is_running()]
        expected = sorted(each.name for each in running)

        def listed(replica):
            status, body = replica.get("/mcp/replicas")
            return sorted(each["name"] for each in body["replicas"]) if status == 200 else body

        if not eventually(lambda: all(listed(each) == expected for each in running), seconds):
            raise NotStarted(f"expected {expected}, but they list {[listed(each) for each in running]}")

    def close(self):
        """Ends every process, the load balancer and the replicas before the stores."""
        for each in self.daemons:
            if each.is_running():
                each.signal(signal.SIGCONT)
                each.process.terminate()
        for each in self.daemons:
            if each.process:
                try:
                    each.process.wait(5)
                except subprocess.TimeoutExpired:
                    each.kill()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


# Below the range that the system uses for outgoing connections: one of those could take a port before its process listens
# on it. Test scripts that run side by side start at different ports.
PORTS = range(10_000, 32_000)
ports = (PORTS[(os.getpid() * 97 + at) % len(PORTS)] for at in itertools.count())


def free_port():
    """Returns a free port that no earlier call returned."""
    for port in ports:
        with socket.socket() as each:
            each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                each.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def accepts(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False


def get(url, path, token=None, seconds=10):
    where = urlparse(url)
    connection = http.client.HTTPConnection(where.hostname, where.port, timeout=seconds)
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
        response = connection.getresponse()
        text = response.read().decode()
        try:
            return response.status, json.loads(text)
        except ValueError:
            return response.status, text
    finally:
        connection.close()


def descendants(pid):
    """Returns the processes that a process started, and those that they started."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue  # the process has exited
    found, more = [], [pid]
    while more:
        more = [child for child, parent in parents.items() if parent in more]
        found += more
    return found


def eventually(check, seconds=10, pause=0.1):
    """Returns the first truthy value of `check()`, or its last value after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        value = check()
        if value or time.monotonic() > deadline:
            return value
        time.sleep(pause)


def run_in_home(run):
    """Calls `run(home)` with a temporary folder, and ends every process that it left, also after Ctrl-C."""
    processes.own_all()
    home = Path(tempfile.mkdtemp(prefix="toolyard-replicas-"))
    try:
        run(home)
    finally:
        processes.sweep(0)
        shutil.rmtree(home, ignore_errors=True)
