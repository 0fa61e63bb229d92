from collections import Counter, OrderedDict, defaultdict, deque, namedtuple

orders = (await list_orders(limit=50))["orders"]
by_customer = defaultdict(list)
for order in orders:
    by_customer[order["customer_id"]].append(order["total"])
for key in sorted(by_customer):
    print(key, len(by_customer[key]), round(sum(by_customer[key]), 2))
print(Counter(order["sku"] for order in orders).most_common(2))
Point = namedtuple("Point", "x y")
print(Point(1, 2)._replace(y=5), deque([1, 2, 3], maxlen=2), OrderedDict(a=1))
