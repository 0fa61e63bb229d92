orders = (await list_orders(limit=3))["orders"]
columns = ["id", "sku", "total"]
print("| " + " | ".join(columns) + " |")
print("|" + "|".join("---" for _ in columns) + "|")
for order in orders:
    print("| " + " | ".join(str(order[column]) for column in columns) + " |")
