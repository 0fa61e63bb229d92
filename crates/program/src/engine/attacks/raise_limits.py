import resource
unlimited = resource.RLIM_INFINITY
for name in ("AS", "CPU", "FSIZE", "NOFILE", "CORE", "NPROC"):
    which = getattr(resource, "RLIMIT_" + name)
    _, hard = resource.getrlimit(which)
    attempt("may set the limit " + name, resource.setrlimit, which, (hard, hard))
    attempt("raised the limit " + name, resource.setrlimit, which, (unlimited, unlimited))
    attempt("changed a limit of process 1", resource.prlimit, 1, which, (1, 1))
held()
