import asyncio

async def retried(function, *args, attempts=5, **kwargs):
    for attempt in range(1, attempts + 1):
        try:
            return await function(*args, **kwargs)
        except ToolError as error:
            print(f"attempt {attempt} failed: {error}")
            if attempt == attempts:
                raise
            await asyncio.sleep(0.001 * 2**attempt)

print(await retried(flaky, "a", fail_times=3))
