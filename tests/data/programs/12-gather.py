import asyncio

customers = await asyncio.gather(*(get_customer(number) for number in (1, 2, 3, 4)))
print([customer["name"] for customer in customers])
