x = 1
print("open)
