try:
    blocks = [b"x" * (1 << 20) for _ in range(300)]
except MemoryError:
    held()
escaped("allocated %d MB of memory" % len(blocks))
