# needs 3.11
import asyncio

async def main():
    async with asyncio.TaskGroup() as group:
        group.create_task(fail(message="one of them"))
        group.create_task(slow(ms=2000, value=1))

try:
    asyncio.run(main())
except* ToolError as errors:
    print([str(error) for error in errors.exceptions])
