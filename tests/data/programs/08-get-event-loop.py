import asyncio
import warnings

warnings.simplefilter("ignore")
loop = asyncio.new_event_loop()
asyncio.set_event_loop(loop)
print(loop.run_until_complete(get_customer(1))["name"])
print(loop.run_until_complete(asyncio.sleep(0, "slept")))
loop.close()
