found = []
for number in range(1024):
    try:
        os.fstat(number)
        found.append(number)
    except OSError:
        pass
if found != [3]:
    escaped("the descriptors %s" % found)
held()
