import re
print("trying")
re.match(r"(a+)+$", "a" * 64 + "b")
print("escaped: finished")
