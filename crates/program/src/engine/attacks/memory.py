try:
    kept = [b"x" * (1 << 20) for _ in range(300)]
except MemoryError:
    held()
escaped("%d MB of memory" % len(kept))
