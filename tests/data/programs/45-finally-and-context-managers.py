from contextlib import contextmanager, suppress

@contextmanager
def step(name):
    print("start", name)
    try:
        yield name.upper()
    finally:
        print("end", name)

with step("load") as name:
    print(name)
with suppress(ToolError):
    with step("fail"):
        await fail(message="x")
print("after")
