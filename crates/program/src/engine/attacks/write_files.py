def write(path):
    with open(path, "wb") as file:
        file.write(b"x")
for folder in ("/", "/tmp", "/toolyard", "/toolyard/_program", "/python", "/python/lib", "/usr/lib", "/dev/shm", "/var/tmp", os.getcwd(), sys.prefix):
    attempt("wrote a file in " + folder, write, os.path.join(folder, "attack"))
for path in (sys.executable, os.__file__, "/toolyard/zygote.py"):
    attempt("changed " + path, write, path)
attempt("removed a file", os.remove, os.__file__)
attempt("renamed a file", os.rename, os.__file__, os.__file__ + "x")
held()
