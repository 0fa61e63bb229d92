import asyncio

async def worker(name, queue, done):
    while True:
        number = await queue.get()
        customer = await get_customer(number)
        done.append(customer["name"])
        queue.task_done()

async def main():
    queue, done = asyncio.Queue(), []
    for number in (1, 2, 3, 4, 5):
        queue.put_nowait(number)
    workers = [asyncio.create_task(worker(f"w{n}", queue, done)) for n in range(3)]
    await queue.join()
    for task in workers:
        task.cancel()
    await asyncio.gather(*workers, return_exceptions=True)
    print(sorted(done))

asyncio.run(main())
