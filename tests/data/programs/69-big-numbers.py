big = await echo(value=2**80 + 1)
print(big, type(big).__name__)
print(await echo(value={"deep": [1.5, -0.0, 1e300, 12345678901234567890]}))
print(await echo(value="\u00e4\u20ac\U0001f600\n"))
