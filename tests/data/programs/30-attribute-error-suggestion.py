class Order:
    def __init__(self):
        self.total = 3

print(Order().totla)
