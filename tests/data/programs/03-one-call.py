customer = await get_customer(customer_id=2)
print(customer["name"], customer["country"])
