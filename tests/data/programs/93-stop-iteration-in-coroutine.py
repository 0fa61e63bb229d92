async def first(items):
    return next(iter(items))

await first([])
