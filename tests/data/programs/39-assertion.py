page = await list_orders(limit=2)
assert len(page["orders"]) == 2, "two"
assert len(page["orders"]) == 3, f"expected 3, got {len(page['orders'])}"
