import asyncio

async def inner():
    return await fail(message="broken")

async def outer():
    value = await inner()
    return value

asyncio.run(outer())
