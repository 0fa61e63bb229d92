from decimal import ROUND_HALF_UP, Decimal, getcontext
from fractions import Fraction

orders = (await list_orders(limit=50))["orders"]
total = sum(Decimal(str(order["total"])) for order in orders)
print(total, (total * Decimal("0.19")).quantize(Decimal("0.01"), ROUND_HALF_UP))
getcontext().prec = 30
print(Decimal(1) / Decimal(7), Fraction(3, 4) + Fraction(1, 6), 0.1 + 0.2)
