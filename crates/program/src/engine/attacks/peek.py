# The zygote has the same things at the same addresses as its forks.
print("trying")
if _libc.prctl(3, 0, 0, 0, 0) == 1:
    escaped("other processes may read this one's memory")
there = ctypes.create_string_buffer(b"unread", 64)
here = ctypes.create_string_buffer(64)
class Piece(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]
wanted = Piece(id(os), 16)
into = Piece(ctypes.addressof(here), 16)
for pid in (os.getppid(), os.getpid() - 1, os.getpid() + 1):
    if syscall(310, 270, pid, ctypes.byref(into), 1, ctypes.byref(wanted), 1, 0) > 0:
        escaped("read the memory of process %d" % pid)
held()
