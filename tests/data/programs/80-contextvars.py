import asyncio
from contextvars import ContextVar

user = ContextVar("user", default="nobody")

async def show(name):
    user.set(name)
    await slow(ms=2, value=0)
    return user.get()

print(await asyncio.gather(show("ann"), show("bob")), user.get())
