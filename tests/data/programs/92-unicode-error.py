data = "caf\u00e9".encode("utf-8")
print(data, data.decode("latin-1"))
data.decode("ascii")
