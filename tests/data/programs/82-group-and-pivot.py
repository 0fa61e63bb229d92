from collections import defaultdict

orders = (await list_orders(limit=50))["orders"]
pivot = defaultdict(lambda: defaultdict(float))
for order in orders:
    pivot[order["date"][:7]][order["sku"]] += order["total"]
skus = sorted({order["sku"] for order in orders})
print("month   " + "".join(f"{sku:>9}" for sku in skus))
for month in sorted(pivot):
    print(month + " " + "".join(f"{pivot[month][sku]:9.2f}" for sku in skus))
