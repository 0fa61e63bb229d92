async def retried(function, *args, attempts=2, **kwargs):
    for attempt in range(1, attempts + 1):
        try:
            return await function(*args, **kwargs)
        except ToolError as error:
            print(f"attempt {attempt} failed: {error}")
            if attempt == attempts:
                raise

print("before")
print(await retried(flaky, "b", fail_times=3))
