if os.environ:
    escaped("read environment variables: %s" % ", ".join(sorted(os.environ)))
block = ctypes.POINTER(ctypes.c_char_p).in_dll(_libc, "environ")
if block and block[0]:
    escaped("read environment variables: %s" % block[0])
held()
