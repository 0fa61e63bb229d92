orders = (await list_orders(limit=50))["orders"]
top = sorted(orders, key=lambda order: (-order["total"], order["id"]))[:3]
print([(order["id"], order["total"]) for order in top])
skus = {order["sku"] for order in orders}
wanted = {"A-1", "Z-9"}
print(sorted(skus & wanted), sorted(wanted - skus), len(skus | wanted), skus >= {"A-1"})
print(max(orders, key=lambda order: order["date"])["id"], any(o["total"] < 0 for o in orders), all([]))
