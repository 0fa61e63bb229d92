import gc

def work():
    get_customer(1)

work()
print("went on")
