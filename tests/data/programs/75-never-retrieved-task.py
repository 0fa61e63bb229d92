import asyncio
import gc

async def lost():
    raise ValueError("not retrieved")

async def main():
    asyncio.create_task(lost())
    await asyncio.sleep(0.01)
    gc.collect()
    print("main is done")

asyncio.run(main(), debug=False)
print("after")
