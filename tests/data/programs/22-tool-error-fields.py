try:
    await fail(message="no such thing", type="not_found")
except ToolError as error:
    print(str(error))
    print(repr(error.message), error.type, error.tool, error.details)
    print(isinstance(error, Exception), repr(error))
