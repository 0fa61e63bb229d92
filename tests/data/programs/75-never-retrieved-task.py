import asyncio

async def lost():
    raise ValueError("nobody looks")

async def main():
    asyncio.create_task(lost())
    await asyncio.sleep(0.01)
    print("main is done")

asyncio.run(main(), debug=False)
print("after")
