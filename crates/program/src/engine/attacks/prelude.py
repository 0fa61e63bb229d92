import ctypes, os, sys
_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long
_x86 = os.uname().machine == "x86_64"

def syscall(x86, arm, *args):
    """Makes a system call by its number on either architecture. Returns -1 if the kernel refuses."""
    number = x86 if _x86 else arm
    values = [ctypes.c_long(value) if isinstance(value, int) else value for value in args]
    return -1 if number is None else _libc.syscall(ctypes.c_long(number), *values)

def held():
    print("held")
    sys.exit()

def escaped(what):
    print("escaped:", what)
    sys.exit()

def attempt(what, function, *args):
    try:
        function(*args)
    except Exception:
        return
    escaped(what)
