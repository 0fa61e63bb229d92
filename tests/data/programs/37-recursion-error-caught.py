def deep(n):
    return deep(n + 1)

try:
    deep(0)
except RecursionError as error:
    print("caught:", str(error).split(" in ")[0][:32])
