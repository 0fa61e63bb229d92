try:
    session = os.getsid(0)
except OSError:
    held()
# The kernel returns 0 if the session leader is in another namespace.
if session != 0:
    escaped("sees process %d, its session leader" % session)
for pid in range(1, 5000):
    try:
        if os.getsid(pid) != 0:
            escaped("sees process %d" % pid)
    except OSError:
        pass
held()
