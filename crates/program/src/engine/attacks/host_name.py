if os.uname().nodename != "program":
    escaped("the name of the machine: " + os.uname().nodename)
held()
