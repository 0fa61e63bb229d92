import asyncio

try:
    await asyncio.wait_for(slow(ms=5000, value="never"), timeout=0.05)
except asyncio.TimeoutError as error:
    print("too slow:", type(error).__name__)
print(await asyncio.wait_for(slow(ms=1, value="in time"), timeout=5))
