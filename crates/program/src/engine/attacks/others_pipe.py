# Other programs run at the same time. Their pipes must neither be visible nor be passed on.
import array, socket
try:
    own = socket.socket(fileno=os.dup(3))
    own.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [3]))])
    escaped("may pass descriptors on")
except Exception:
    held()
