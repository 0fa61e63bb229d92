customer = await get_customer(1)
print(customer["nmae"])
