class Report:
    def __init__(self, rows):
        self.rows = rows

    def total(self):
        return sum(self.cell(row, "total") for row in self.rows)

    @staticmethod
    def cell(row, name):
        return row[name]

orders = (await list_orders(limit=2))["orders"]
print(Report(orders).total())
print(Report(orders + [{}]).total())
