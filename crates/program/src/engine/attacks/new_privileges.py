if _libc.prctl(39, 0, 0, 0, 0) != 1:
    escaped("an executable may grant privileges")
held()
