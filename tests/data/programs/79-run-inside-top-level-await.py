import asyncio

print((await get_customer(1))["name"])

async def other():
    return (await get_customer(2))["name"]

print("two:", (await asyncio.gather(other(), other())))
