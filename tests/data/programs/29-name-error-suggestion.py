customers = [1, 2]
print(customer)
