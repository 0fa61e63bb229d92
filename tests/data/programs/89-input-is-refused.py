try:
    name = input("name? ")
except EOFError:
    print("nobody there")
