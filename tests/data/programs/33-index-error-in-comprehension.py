rows = [[1, 2], [3]]
print([row[0] for row in rows])
print([row[1] for row in rows])
