import posix, subprocess, multiprocessing
attempt("started a process", subprocess.run, [sys.executable, "-c", "pass"])
attempt("spawned a process", os.posix_spawn, sys.executable, [sys.executable], {})
attempt("opened a pipe to a process", os.popen, "true")
attempt("forked a worker", multiprocessing.get_context("fork").Process(target=print).start)
if posix.system("true") == 0:
    escaped("ran a command")
held()
