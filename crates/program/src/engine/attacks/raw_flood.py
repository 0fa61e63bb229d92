frame = (60001).to_bytes(4, "little") + b"o" + b"x" * 60000
print("trying")
while True:
    os.write(3, frame)
