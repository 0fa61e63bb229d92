# needs 3.11
def check(values):
    errors = []
    for value in values:
        try:
            int(value)
        except ValueError as error:
            errors.append(error)
    if errors:
        raise ExceptionGroup("bad values", errors)

check(["1"])
check(["1", "x", "y"])
