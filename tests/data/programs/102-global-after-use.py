def count():
    total = 1
    global total
    return total

print(count())
