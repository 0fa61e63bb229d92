# needs 3.11
import asyncio

async with asyncio.TaskGroup() as group:
    one = group.create_task(get_customer(1))
    two = group.create_task(slow(ms=5, value="two"))
print(one.result()["name"], two.result())
try:
    async with asyncio.timeout(0.02):
        await slow(ms=5000, value=None)
except TimeoutError:
    print("timed out")
