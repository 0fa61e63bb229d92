if os.uname().nodename != "program":
    escaped("read the host name: " + os.uname().nodename)
held()
