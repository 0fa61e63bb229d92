import asyncio

gate = asyncio.Semaphore(2)
running = most = 0

async def one(number):
    global running, most
    async with gate:
        running += 1
        most = max(most, running)
        value = await slow(ms=5, value=number * number)
        running -= 1
        return value

print(await asyncio.gather(*map(one, range(6))), "most:", most)
