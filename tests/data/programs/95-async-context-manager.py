class Session:
    async def __aenter__(self):
        self.customer = await get_customer(1)
        print("enter", self.customer["name"])
        return self

    async def __aexit__(self, *error):
        await slow(ms=1, value=None)
        print("exit", error[0])

async with Session() as session:
    print(session.customer["id"])
