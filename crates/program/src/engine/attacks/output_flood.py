for _ in range(3000):
    print("x" * 1000)
