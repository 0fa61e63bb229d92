attempt("became root", os.setuid, 0)
attempt("changed its groups", os.setgroups, [])
if syscall(170, 161, b"attacked", 8) == 0:
    escaped("set the host name")
if syscall(171, 162, b"attacked", 8) == 0:
    escaped("set the domain name")
attempt("created a device", os.mknod, "/attack", 0o600 | 0o060000, 0x100)
header = (ctypes.c_uint32 * 2)(0x20080522, 0)
sets = (ctypes.c_uint32 * 6)()
if syscall(125, 90, header, sets) == 0 and any(sets[index] for index in (0, 1, 3, 4)):
    escaped("has capabilities")
held()
