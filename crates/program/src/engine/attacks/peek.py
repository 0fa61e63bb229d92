# The zygote has the same objects at the same addresses as its forks.
print("trying")
if _libc.prctl(3, 0, 0, 0, 0) == 1:
    escaped("other processes may read the memory of this one")
there = ctypes.create_string_buffer(b"unread", 64)
here = ctypes.create_string_buffer(64)
class Piece(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]
remote = Piece(id(os), 16)
local = Piece(ctypes.addressof(here), 16)
for pid in (os.getppid(), os.getpid() - 1, os.getpid() + 1):
    if syscall(310, 270, pid, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0) > 0:
        escaped("read the memory of process %d" % pid)
held()
