import ctypes, os, sys
_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long
_x86 = os.uname().machine == "x86_64"

def syscall(x86, arm, *args):
    """The number on either architecture; -1 when it was refused."""
    number = x86 if _x86 else arm
    words = [ctypes.c_long(word) if isinstance(word, int) else word for word in args]
    return -1 if number is None else _libc.syscall(ctypes.c_long(number), *words)

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
