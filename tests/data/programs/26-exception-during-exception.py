def parse(text):
    try:
        return int(text)
    except ValueError:
        return {}["missing"]

print(parse("12"))
parse("twelve")
