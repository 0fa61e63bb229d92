"""Prints the files that this Python needs. Runs once, outside the sandbox, as the user of the yard."""

import json
import os
import sys
import sysconfig

if sys.version_info < (3, 9) or sys.implementation.name != "cpython":
    print(json.dumps({"refused": "%s %d.%d" % ((sys.implementation.name,) + sys.version_info[:2])}))
    sys.exit()

EXCLUDED = ("_tkinter", "_curses", "_dbm", "_gdbm", "readline", "nis", "ossaudiodev", "_test", "xx", "_xx", "_ctypes_test")

library = os.path.realpath(sysconfig.get_path("stdlib"))
platform = os.path.realpath(sysconfig.get_path("platstdlib"))
dynamic = os.path.join(platform, "lib-dynload")
for file in sorted(os.listdir(dynamic) if os.path.isdir(dynamic) else ()):
    name = file.split(".")[0]
    if not name.startswith(EXCLUDED):
        try:
            __import__(name)
        except Exception:
            pass

libraries = set()
with open("/proc/self/maps") as maps:
    for line in maps:
        path = line.rstrip("\n").partition("/")[2]
        if path and ".so" in path and not path.endswith(" (deleted)"):
            libraries.add("/" + path)
executable = os.path.realpath(sys.executable)
libraries = {path for path in libraries if not path.startswith((library + "/", platform + "/"))}

# The loader also finds libraries through symbolic links, within and between folders.
links = {}
folders = {os.path.dirname(path) for path in libraries} | {"/lib", "/lib64", "/usr/lib", "/usr/lib64"}
for folder in folders:
    try:
        entries = list(os.scandir(folder))
    except OSError:
        continue
    for entry in entries:
        if entry.is_symlink() and ".so" in entry.name:
            real = os.path.realpath(entry.path)
            if real in libraries:
                links[entry.path] = real

print(
    json.dumps(
        {
            "version": "%d.%d.%d" % sys.version_info[:3],
            "executable": executable,
            "library": library,
            "platform": platform,
            "folder": os.path.join(getattr(sys, "platlibdir", "lib"), "python%d.%d" % sys.version_info[:2]),
            "libraries": sorted(libraries),
            "links": sorted(links.items()),
        }
    )
)
