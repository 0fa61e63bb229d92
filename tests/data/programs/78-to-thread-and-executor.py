import asyncio

def heavy(n):
    return sum(range(n))

print(await asyncio.to_thread(heavy, 1000))
loop = asyncio.get_running_loop()
print(await loop.run_in_executor(None, heavy, 10))
