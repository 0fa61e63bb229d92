own = os.getppid()
try:
    session = os.getsid(0)
except OSError:
    held()
for pid in range(1, 5000):
    try:
        if os.getsid(pid) not in (session, 0):
            escaped("sees process %d" % pid)
    except OSError:
        pass
held()
