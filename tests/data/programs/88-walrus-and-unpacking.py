page = await list_orders(limit=5)
if (count := len(page["orders"])) > 3:
    print("many:", count)
first, *middle, last = [order["id"] for order in page["orders"]]
print(first, middle, last)
merged = {**{"a": 1}, "b": 2} | {"c": 3}
print(merged, [*range(3), *"xy"], (lambda *a, **k: (a, k))(1, *[2], z=3))
