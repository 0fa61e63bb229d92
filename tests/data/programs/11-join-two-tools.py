page = await list_orders(limit=50)
names = {}
for order in page["orders"]:
    key = order["customer_id"]
    if key not in names:
        names[key] = (await get_customer(key))["name"]
for order in page["orders"][:6]:
    print(f"{order['id']}: {names[order['customer_id']]:<12}|{order['total']:>9.2f}")
