for path in ("/etc/passwd", "/etc/hostname", "/etc/os-release", "/etc/shadow", "/sys/kernel/notes", "/dev/null"):
    attempt("read " + path, open, path, "rb")
for path in ("/etc", "/home", "/root", "/var", "/dev", "/sys", "/run", "/boot", "/old", "/python/../../etc"):
    attempt("listed " + path, os.listdir, path)
for name in os.listdir("/python/lib") if os.path.isdir("/python/lib") else ():
    packages = "/python/lib/%s/site-packages" % name
    if os.path.isdir(packages) and os.listdir(packages):
        escaped("sees installed packages")
held()
