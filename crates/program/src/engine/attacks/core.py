import resource
if resource.getrlimit(resource.RLIMIT_CORE)[1] != 0:
    escaped("a crash may leave its memory in a file")
held()
