page = await list_orders(limit=2)
print("orders: " + len(page["orders"]))
