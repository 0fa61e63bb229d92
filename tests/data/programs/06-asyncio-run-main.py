import asyncio

async def main():
    customer = await get_customer(3)
    print("customer:", customer["name"])

asyncio.run(main())
