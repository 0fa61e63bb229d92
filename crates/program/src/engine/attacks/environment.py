if os.environ:
    escaped("the environment: %s" % ", ".join(sorted(os.environ)))
block = ctypes.POINTER(ctypes.c_char_p).in_dll(_libc, "environ")
if block and block[0]:
    escaped("the environment: %s" % block[0])
held()
