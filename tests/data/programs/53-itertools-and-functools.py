from functools import lru_cache, partial, reduce
from itertools import accumulate, chain, combinations, groupby, islice, product, zip_longest
from operator import itemgetter

orders = sorted((await list_orders(limit=50))["orders"], key=itemgetter("sku", "id"))
for sku, group in groupby(orders, key=itemgetter("sku")):
    print(sku, [order["id"] for order in group])
print(list(accumulate([1, 2, 3, 4])), list(islice(chain("ab", "cd"), 3)), list(combinations("abc", 2)))
print(list(zip_longest([1, 2], "x", fillvalue="-")), len(list(product([0, 1], repeat=3))))

@lru_cache(maxsize=None)
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)

print(fib(60), fib.cache_info().misses, reduce(lambda a, b: a * b, range(1, 8)), partial(int, base=2)("101"))
