def count(n):
    if n == 0:
        raise ValueError("bottom")
    return count(n - 1)

count(12)
