attempt("made a file in memory", os.memfd_create, "x")
attempt("made a pipe", os.pipe)
if syscall(290, 19, 0, 0) >= 0:
    escaped("made a counter")
held()
