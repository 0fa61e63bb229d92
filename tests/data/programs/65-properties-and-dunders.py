class Basket:
    def __init__(self, items=()):
        self._items = list(items)

    def __len__(self):
        return len(self._items)

    def __iter__(self):
        return iter(self._items)

    def __getitem__(self, index):
        return self._items[index]

    def __add__(self, other):
        return Basket([*self, *other])

    def __contains__(self, item):
        return item in self._items

    def __eq__(self, other):
        return list(self) == list(other)

    def __enter__(self):
        print("open")
        return self

    def __exit__(self, kind, error, traceback):
        print("close", kind.__name__ if kind else None)
        return True

    @property
    def first(self):
        return self._items[0]

    @classmethod
    def of(cls, *items):
        return cls(items)

with Basket.of(1, 2) + Basket([3]) as basket:
    print(len(basket), basket[1:], 3 in basket, basket.first, basket == Basket.of(1, 2, 3))
    raise KeyError("swallowed")
print("on")
