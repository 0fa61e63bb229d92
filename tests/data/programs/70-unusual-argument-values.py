from datetime import date
from decimal import Decimal

print(await echo(value=(1, 2)))
print(await echo(value={"when": str(date(2024, 1, 2)), "none": None, "yes": True}))
print(await echo(value=float(Decimal("1.5"))))
