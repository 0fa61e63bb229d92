import sys

print("a", end="")
print("b", file=sys.stderr)
sys.stdout.write("c\n")
sys.stderr.write("d")
sys.stdout.flush()
print("e")
