def fork_many():
    for _ in range(100):
        if os.fork() == 0:
            os._exit(0)
attempt("forked", fork_many)
for name, x86, arm in (("fork", 57, None), ("vfork", 58, None), ("clone", 56, 220), ("clone3", 435, 435)):
    pid = syscall(x86, arm, 17 if name == "clone" else 0, 0, 0, 0, 0) if name != "vfork" else -1
    if pid == 0:
        os._exit(0)
    if pid > 0:
        escaped("created a process with " + name)
import _thread
attempt("created a thread", _thread.start_new_thread, os.getpid, ())
held()
