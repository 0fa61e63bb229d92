"""The layers of the sandbox that are set up from inside: first for the zygote and so for all programs, then for each
program.

The launcher has already set up the namespaces and the root folder. Every step either works or ends the process. Only the
launcher decides which steps are omitted.
"""

import base64
import ctypes
import os
import resource
import signal
import struct

from . import channel

_libc = ctypes.CDLL(None, use_errno=True)
_libc.prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
_libc.syscall.restype = ctypes.c_long

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 1, 4, 22, 38
_SECCOMP_MODE_FILTER = 2
_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT, _CLOSE_RANGE = 444, 445, 446, 436
_READ_FILE, _READ_DIR = 1 << 2, 1 << 3

_filters = []


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def _syscall(number, *args):
    result = _libc.syscall(ctypes.c_long(number), *args)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def _prctl(option, value, third=0):
    if _libc.prctl(option, value, third, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def zygote(settings):
    """Confines the zygote. Returns the layers that this kernel does not support."""
    without = settings["without"]
    missing = []
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
    if "dumpable" not in without:
        _prctl(_PR_SET_DUMPABLE, 0)
    if "no-new-privs" not in without:
        _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    if "landlock" not in without and not _landlock(settings["readable"]):
        missing.append("Landlock")
    if "seccomp" not in without:
        for text in settings["filters"]:
            code = ctypes.create_string_buffer(base64.b64decode(text))
            # ctypes adds one byte at the end.
            program = _Program((len(code) - 1) // 8, ctypes.addressof(code))
            _filters.append((code, program, ctypes.addressof(program)))
    return missing


def _landlock(readable):
    try:
        version = _syscall(_LANDLOCK_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint(1))
    except OSError:
        return False
    files = (1 << {1: 13, 2: 14, 3: 15, 4: 15}.get(version, 16)) - 1
    rules = struct.pack("=Q", files)
    if version >= 4:
        rules += struct.pack("=Q", 0b11)
    if version >= 6:
        rules += struct.pack("=Q", 0b11)
    ruleset = _syscall(_LANDLOCK_CREATE, rules, ctypes.c_size_t(len(rules)), ctypes.c_uint(0))
    for path in readable:
        folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
        rule = struct.pack("=Qi", _READ_FILE | _READ_DIR, folder)
        _syscall(_LANDLOCK_ADD, ctypes.c_int(ruleset), ctypes.c_int(1), rule, ctypes.c_uint(0))
        os.close(folder)
    _syscall(_LANDLOCK_RESTRICT, ctypes.c_int(ruleset), ctypes.c_uint(0))
    os.close(ruleset)
    return True


def child(settings, request, pipe):
    without = settings["without"]
    if pipe != channel.FD:
        os.dup2(pipe, channel.FD)
    if "descriptors" not in without:
        _close_others()
    limits = (
        ("address-space", resource.RLIMIT_AS, request["address_space"]),
        ("cpu-time", resource.RLIMIT_CPU, request["cpu"]),
        ("file-size", resource.RLIMIT_FSIZE, 0),
        ("open-files", resource.RLIMIT_NOFILE, 64),
        ("core", resource.RLIMIT_CORE, 0),
        ("processes", resource.RLIMIT_NPROC, 0),
    )
    for layer, which, value in limits:
        if layer not in without:
            resource.setrlimit(which, (value, value))
    for _, _, address in _filters:
        _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, address)


def _close_others():
    highest = 2**32 - 1
    try:
        _syscall(_CLOSE_RANGE, ctypes.c_uint(0), ctypes.c_uint(channel.FD - 1), ctypes.c_uint(0))
        _syscall(_CLOSE_RANGE, ctypes.c_uint(channel.FD + 1), ctypes.c_uint(highest), ctypes.c_uint(0))
    except OSError:
        os.closerange(0, channel.FD)
        os.closerange(channel.FD + 1, 1024)
