import asyncio

results = await asyncio.gather(get_customer(1), get_customer(99), get_customer(2), return_exceptions=True)
for result in results:
    if isinstance(result, ToolError):
        print("error:", result, "|", result.type, "|", result.tool)
    else:
        print("ok:", result["name"])
