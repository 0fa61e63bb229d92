attempt("created a file in memory", os.memfd_create, "x")
attempt("created a pipe", os.pipe)
if syscall(290, 19, 0, 0) >= 0:
    escaped("created an event counter")
held()
