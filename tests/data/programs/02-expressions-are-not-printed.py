1 + 1
"nothing"
[x for x in range(3)]
print("only this")
42
