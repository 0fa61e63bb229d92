orders, cursor, pages = [], None, 0
while True:
    page = await list_orders(cursor=cursor, limit=4)
    orders += page["orders"]
    pages += 1
    cursor = page["next_cursor"]
    if not cursor:
        break
print(pages, "pages,", len(orders), "orders")
print("total:", round(sum(order["total"] for order in orders), 2))
