try:
    name = input("name? ")
except EOFError:
    print("no input")
