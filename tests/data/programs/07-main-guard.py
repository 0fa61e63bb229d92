import asyncio


async def main():
    page = await list_orders(limit=3)
    for order in page["orders"]:
        print(f"{order['id']:>4} {order['total']:8.2f}")


if __name__ == "__main__":
    asyncio.run(main())
