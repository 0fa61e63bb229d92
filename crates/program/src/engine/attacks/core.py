import resource
if resource.getrlimit(resource.RLIMIT_CORE)[1] != 0:
    escaped("a crash may write a core file")
held()
