import asyncio

jobs = [slow(ms=120, value="late"), slow(ms=1, value="early"), slow(ms=60, value="middle")]
for job in asyncio.as_completed(jobs):
    print(await job)
