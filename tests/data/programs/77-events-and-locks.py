import asyncio

log = []

async def waiter(event, name):
    await event.wait()
    log.append(name)

async def main():
    event, lock = asyncio.Event(), asyncio.Lock()
    tasks = [asyncio.ensure_future(waiter(event, n)) for n in "ab"]
    await asyncio.sleep(0)
    async with lock:
        log.append("set")
        event.set()
    await asyncio.wait(tasks)
    print(log, lock.locked())

asyncio.run(main())
