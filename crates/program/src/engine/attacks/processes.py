try:
    session = os.getsid(0)
except OSError:
    held()
# Who cannot see the process that leads its session is told that there is none.
if session != 0:
    escaped("sees process %d, which leads its session" % session)
for pid in range(1, 5000):
    try:
        if os.getsid(pid) != 0:
            escaped("sees process %d" % pid)
    except OSError:
        pass
held()
