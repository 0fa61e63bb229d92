"""Programs from Debian packages."""

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path


def require_program(program, package=None):
    """Returns the path of a program. Installs its package first if it is missing, which needs root."""
    if not shutil.which(program):
        env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        # Stages run side by side, and apt-get does not wait for its own lock.
        with (Path(tempfile.gettempdir()) / "toolyard-apt.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for command in (["update"], ["install", "-y", "--no-install-recommends", package or program]):
                subprocess.run(["apt-get", "-qq", *command], stdout=sys.stderr, env=env, check=False)
    return shutil.which(program) or sys.exit(f"{program} is missing and its package cannot be installed")
