"""Redis, PostgreSQL and replicas for the tests of what is stored in PostgreSQL."""

import json
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cluster import KEYS, Postgres, Redis, Replica
from harness import processes


class Stores:
    """The servers that all cases use, each with a database of its own."""

    def __init__(self, home):
        self.home = home
        self.redis = Redis(home / "redis").start()
        self.postgres = Postgres(home / "postgres").start()
        self.redis.wait()
        self.postgres.wait()

    def database(self, name, options=""):
        self.postgres.query(f"create database {name} {options}", "postgres")
        return Database(self.postgres, name)

    def close(self):
        for each in (self.postgres, self.redis):
            each.resume()
            # PostgreSQL waits for its clients after SIGTERM, but not after SIGINT.
            each.signal(signal.SIGINT)
            each.process.wait(20)


class Database:
    def __init__(self, server, name, password=""):
        self.server, self.name, self.password = server, name, password

    @property
    def url(self):
        login = f"toolyard:{self.password}" if self.password else "toolyard"
        return f"postgres://{login}@127.0.0.1:{self.server.port}/{self.name}"

    def query(self, sql):
        return self.server.query(sql, self.name)

    def count(self, table, where="true"):
        return int(self.query(f"select count(*) from toolyard.{table} where {where}"))

    def ids(self, table):
        return {line.replace("-", "") for line in self.query(f"select id from toolyard.{table}").splitlines()}


def write_config(home, stores, url, yard, keys):
    home.mkdir(parents=True, exist_ok=True)
    keys = {"redis": stores.redis.url, "postgres": url, "keys": keys, "name": "${REPLICA_NAME}"}
    lines = "\n".join(f"{key} = {json.dumps(value)}" for key, value in keys.items())
    new = home / "toolyard.toml.new"
    new.write_text(f"demo = true\n{yard}\n[limits]\nrate = false\n[cluster]\n{lines}\n")
    return new.replace(home / "toolyard.toml")


class Yards:
    """Replicas of one configuration, which are stopped at the end of a case."""

    def __init__(self, case, stores, url, yard="[audit]\n[history]\n", env=None, auth="none", keys=KEYS[:1]):
        self.home, self.env, self.auth, self.replicas = stores.home / case, env, auth, []
        self.stores, self.url = stores, url
        self.configure(yard, keys)

    def configure(self, yard, keys=KEYS[:1]):
        """Writes the configuration file. Running replicas reload what can be reloaded."""
        self.config = write_config(self.home, self.stores, self.url, yard, keys)

    def add(self):
        number = len(self.replicas) + 1
        home = self.home / f"replica-{number}"
        self.replicas.append(Replica(home, processes.binary(), number, self.config, ["--auth", self.auth], self.env))
        return self.replicas[-1].start()

    def run(self, *words):
        """Runs a command with the configuration."""
        env = {**processes.environment(self.home), "REPLICA_NAME": "one-shot", **(self.env or {})}
        return subprocess.run(
            [processes.binary(), *words, "--config", self.config], capture_output=True, text=True, cwd=self.home, env=env,
            timeout=60, stdin=subprocess.DEVNULL,
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for each in self.replicas:
            each.resume() if each.is_running() else None
            each.stop()


def until(condition, seconds=20):
    deadline = time.monotonic() + seconds
    while not (found := condition()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return found


def fails_to_start(tally, what, yards, *texts, seconds=8, hidden=()):
    """Checks that a replica does not start and says why."""
    replica = yards.add()
    began = time.monotonic()
    ended = until(lambda: not replica.is_running(), 30)
    took = time.monotonic() - began
    log = replica.log()
    tally.report(ended and replica.process.returncode == 1, f"{what}: the start fails", log)
    tally.report(all(text in log for text in (*texts, "hint: ")), f"{what}: the reason and a hint are shown", log)
    tally.report(took < seconds, f"{what}: it fails in time", took)
    for text in hidden:
        tally.report(text not in log, f"{what}: the password is not shown", log)
    print("  " + log.strip().replace("\n", "\n  "), flush=True)


def run_cases(tally, cases):
    """Runs the cases that the command line names, or all of them, with one pair of stores."""
    processes.own_all()
    for name in sys.argv[1:]:
        if name not in cases:
            sys.exit(f"unknown case {name}, expected one of: {' '.join(cases)}")
    with tempfile.TemporaryDirectory(prefix="toolyard-postgres-") as folder:
        stores = Stores(Path(folder))
        try:
            for name, case in cases.items():
                if name in (sys.argv[1:] or cases):
                    print(f"{name}: {case.__doc__}", flush=True)
                    case(stores)
        finally:
            stores.close()
            processes.sweep(5)
    tally.end()
