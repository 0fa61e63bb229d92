total = 1
for value in (1, 2):
    total += value
return total
