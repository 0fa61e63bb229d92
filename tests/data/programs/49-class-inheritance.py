from abc import ABC, abstractmethod

class Shape(ABC):
    count = 0

    def __init__(self, name):
        self.name = name
        type(self).count += 1

    @abstractmethod
    def area(self): ...

    def __repr__(self):
        return f"{type(self).__name__}({self.name}, {self.area():.2f})"

class Square(Shape):
    def __init__(self, side):
        super().__init__("square")
        self.side = side

    def area(self):
        return self.side**2

class Cube(Square):
    def area(self):
        return 6 * super().area()

print([Square(2), Cube(2)], Square.count, Cube.count)
print([c.__name__ for c in Cube.__mro__])
try:
    Shape("none")
except TypeError as error:
    print("abstract:", "abstract" in str(error))
