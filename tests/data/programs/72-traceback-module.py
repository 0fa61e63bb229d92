import traceback

async def risky():
    await fail(message="inside")

try:
    await risky()
except ToolError:
    text = traceback.format_exc()
    lines = [line for line in text.splitlines() if "<program>" in line or line.startswith("ToolError")]
    print([line.strip().split("<program>")[-1] for line in lines])
try:
    1 / 0
except ZeroDivisionError as error:
    print(traceback.format_exception_only(type(error), error))
