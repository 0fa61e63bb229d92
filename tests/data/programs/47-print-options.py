import sys

print("x", "y", sep="\t", end="\n\n", flush=True)
print(*range(5), sep="-")
print()
print({"a": [1, (2, 3)], "b": None}, True, 1.0, 1e22, -0.0)
sys.stdout.writelines(["one\n", "two\n"])
print("\u00e4\u20ac\U0001f600 \x1b[1m")
