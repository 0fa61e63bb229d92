print("first")
data = await fail(message="the disk is full")
print("never")
