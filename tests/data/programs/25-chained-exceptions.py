class ReportError(Exception):
    pass

async def report(number):
    try:
        return await get_customer(number)
    except ToolError as error:
        raise ReportError(f"no report for {number}") from error

await report(99)
