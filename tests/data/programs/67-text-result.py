text = await describe("shipping")
print(type(text).__name__, len(text.split()))
print(text.upper()[:20])
