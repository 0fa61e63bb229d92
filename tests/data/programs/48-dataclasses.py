from dataclasses import dataclass, field, asdict, replace

@dataclass(order=True)
class Line:
    total: float
    sku: str = field(compare=False)
    tags: list = field(default_factory=list, compare=False)

    @property
    def gross(self):
        return round(self.total * 1.19, 2)

page = await list_orders(limit=3)
lines = sorted(Line(order["total"], order["sku"]) for order in page["orders"])
print(lines[0])
print(asdict(lines[-1]), lines[-1].gross)
print(replace(lines[0], sku="X"))
