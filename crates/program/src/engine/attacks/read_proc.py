for path in ("/proc", "/proc/self/fd", "/proc/1/task", "/proc/sys/kernel"):
    attempt("listed " + path, os.listdir, path)
for path in ("/proc/self/mem", "/proc/1/mem", "/proc/1/environ", "/proc/self/maps", "/proc/version"):
    attempt("opened " + path, open, path, "rb")
held()
