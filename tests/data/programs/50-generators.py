def window(values, size):
    values = list(values)
    for start in range(len(values) - size + 1):
        yield values[start : start + size]

def running_total():
    total = 0
    while True:
        value = yield total
        if value is None:
            return "closed"
        total += value

page = await list_orders(limit=6)
print(list(window((order["id"] for order in page["orders"]), 3)))
totals = running_total()
next(totals)
print([totals.send(value) for value in (5, 6, 7)])
try:
    totals.send(None)
except StopIteration as stop:
    print(stop.value)
