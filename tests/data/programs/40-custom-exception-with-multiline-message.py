# needs 3.10
class Problem(Exception):
    def __str__(self):
        return "first line\nsecond line"

raise Problem()
