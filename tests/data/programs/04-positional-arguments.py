customer = await get_customer(1)
print(customer)
page = await list_orders(None, 2)
print([order["id"] for order in page["orders"]])
