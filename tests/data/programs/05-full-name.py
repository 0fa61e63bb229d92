order = (await mcp__shop__list_orders(limit=1))["orders"][0]
print(order["id"], order["total"])
