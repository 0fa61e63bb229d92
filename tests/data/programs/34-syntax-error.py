print("one")
for x in range(3)
    print(x)
