room = ctypes.create_string_buffer(512)
class Segments(ctypes.Structure):
    _fields_ = [("used", ctypes.c_int), ("more", ctypes.c_long * 16)]
segments = Segments()
if syscall(31, 195, 0, 14, ctypes.byref(segments)) >= 0 and segments.used > 0:
    escaped("sees %d shared memory segments of other processes" % segments.used)
held()
