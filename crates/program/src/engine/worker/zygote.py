"""The process that all programs are forked from. It loads the standard library once, and never runs code of a program.

It is process 1 of its process namespace, so all programs die with it. It reads only messages of the engine.
"""

import gc
import json
import os
import select
import socket
import sys

HOME = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(HOME, "settings.json")) as file:
    SETTINGS = json.load(file)
sys.path.insert(0, HOME)

from _program import confine, run  # noqa: E402

sys.path.remove(HOME)

CONTROL = 0


def preload():
    """Imports commonly used modules, so that forks have them. Returns the names of those that exist."""
    import importlib

    modules = []
    for name in SETTINGS["preload"]:
        try:
            importlib.import_module(name)
            modules.append(name)
        except ImportError:
            pass
    return modules


def main():
    if "environment" not in SETTINGS["without"]:
        os.environ.clear()
    modules = preload()
    run.prepare()
    missing = confine.zygote(SETTINGS)
    control = socket.socket(fileno=CONTROL)
    poll = select.poll()
    poll.register(CONTROL, select.POLLIN)
    running = {}
    hello = {
        "hello": {
            "version": "%d.%d.%d" % sys.version_info[:3],
            "modules": modules,
            "missing": missing,
            "without": SETTINGS["without"],
        }
    }
    control.sendall(json.dumps(hello).encode())
    gc.disable()
    gc.collect()
    gc.freeze()
    while True:
        for descriptor, _ in poll.poll():
            if descriptor != CONTROL:
                number, pid = running.pop(descriptor)
                poll.unregister(descriptor)
                os.close(descriptor)
                _, status = os.waitpid(pid, 0)
                control.sendall(b'{"ended":{"id":%d,"status":%d}}' % (number, status))
                continue
            message, descriptors, _, _ = socket.recv_fds(control, 4096, 1)
            if not message:
                return
            request = json.loads(message)
            (pipe,) = descriptors
            try:
                pid = os.fork()
            except OSError as error:
                os.close(pipe)
                refused = {"refused": {"id": request["id"], "why": str(error)}}
                control.sendall(json.dumps(refused).encode())
                continue
            if pid == 0:
                # Never returns.
                run.child(SETTINGS, request, pipe)
            os.close(pipe)
            handle = os.pidfd_open(pid)
            running[handle] = (request["id"], pid)
            poll.register(handle, select.POLLIN)
            socket.send_fds(control, [b'{"started":{"id":%d}}' % request["id"]], [handle])


main()
os._exit(0)
