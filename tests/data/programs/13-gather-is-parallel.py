import asyncio, time

began = time.monotonic()
values = await asyncio.gather(*(slow(ms=150, value=number) for number in range(8)))
print(values, time.monotonic() - began < 0.9)
