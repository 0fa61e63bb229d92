import asyncio

async def patient():
    try:
        await slow(ms=10000, value=1)
    except asyncio.CancelledError:
        print("cancelled, cleaning up")
        raise
    finally:
        print("finally")

task = asyncio.create_task(patient())
await asyncio.sleep(0.02)
task.cancel()
try:
    await task
except asyncio.CancelledError:
    print("gone", task.cancelled())
