# Another program waits meanwhile; its pipe must not be here, nor be handed over.
import array, socket
try:
    own = socket.socket(fileno=os.dup(3))
    own.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [3]))])
    escaped("may hand descriptors over")
except Exception:
    held()
