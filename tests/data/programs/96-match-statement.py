# needs 3.10
def describe_order(order):
    match order:
        case {"total": total, "sku": sku} if total > 100:
            return f"big {sku}"
        case {"sku": str(sku)}:
            return f"small {sku}"
        case [first, *rest]:
            return f"list of {1 + len(rest)} from {first}"
        case _:
            return "other"

orders = (await list_orders(limit=4))["orders"]
print([describe_order(order) for order in orders], describe_order([1, 2]), describe_order(None))
