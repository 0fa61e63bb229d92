# needs 3.11
try:
    int("x")
except ValueError as error:
    error.add_note("while reading row 3")
    raise
