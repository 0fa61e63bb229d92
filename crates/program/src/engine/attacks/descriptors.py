descriptors = []
for number in range(1024):
    try:
        os.fstat(number)
        descriptors.append(number)
    except OSError:
        pass
if descriptors != [3]:
    escaped("has the descriptors %s" % descriptors)
held()
