"""Installs the locked packages of a directory in `tests`, once per state of the lock files."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
TARGET = TESTS.parent / os.environ.get("CARGO_TARGET_DIR", "target")
LOCKS = ["package.json", "package-lock.json", ".npmrc", "requirements.txt"]


def install(name, locks=None):
    """Installs the packages that `tests/name` or `locks` pins, unless they are up to date. Returns the directory."""
    locks, cache = locks or TESTS / name, TARGET / name
    lock_file = TARGET / f"{name}.lock"
    lock_file.parent.mkdir(parents=True, exist_ok=True)
    # Stages run side by side, and two of them can need the same packages.
    with lock_file.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return install_locked(locks, cache)


def install_locked(locks, cache):
    node = subprocess.run(["node", "--version"], check=True, capture_output=True, text=True).stdout.strip()
    digest = hashlib.sha256(f"{node} {sys.version} {cache}".encode())
    files = [locks / lock for lock in LOCKS if (locks / lock).exists()]
    for file in files:
        digest.update(file.read_bytes())
    stamp = cache / "stamp"
    if not stamp.exists() or stamp.read_text() != digest.hexdigest():
        shutil.rmtree(cache, ignore_errors=True)
        cache.mkdir(parents=True)
        for file in files:
            shutil.copy(file, cache)
        if (cache / "package.json").exists():
            subprocess.run(["npm", "ci", "--loglevel=error"], cwd=cache, check=True, stdout=sys.stderr)
        if (cache / "requirements.txt").exists():
            subprocess.run([sys.executable, "-m", "venv", cache / "venv"], check=True)
            pip = [cache / "venv/bin/pip", "install", "--quiet", "--disable-pip-version-check"]
            subprocess.run([*pip, "-r", cache / "requirements.txt"], check=True, stdout=sys.stderr)
        stamp.write_text(digest.hexdigest())
    return cache
