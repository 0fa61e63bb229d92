async def every_order(limit=5):
    cursor = None
    while True:
        page = await list_orders(cursor=cursor, limit=limit)
        for order in page["orders"]:
            yield order
        cursor = page["next_cursor"]
        if cursor is None:
            return

seen = [order["id"] async for order in every_order()]
print(seen)
big = {order["id"]: order["total"] async for order in every_order(3) if order["total"] > 100}
print(big)
