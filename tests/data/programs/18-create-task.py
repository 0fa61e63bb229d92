import asyncio

task = asyncio.create_task(slow(ms=10, value="done"), name="mine")
print(task.get_name(), task.done())
print(await task, task.done())
