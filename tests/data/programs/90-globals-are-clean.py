print(sorted(name for name in globals() if not name.startswith("__")))
x = 1
print("x" in globals(), __name__)
def f():
    global y
    y = 2
f()
print(y)
