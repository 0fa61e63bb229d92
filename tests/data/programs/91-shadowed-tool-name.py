async def get_customer(number):
    return {"name": "mine", "number": number}

print(await get_customer(5))
print((await mcp__shop__get_customer(1))["name"])
