import statistics as s

totals = [order["total"] for order in (await list_orders(limit=50))["orders"]]
print(f"{s.mean(totals):.4f} {s.median(totals):.2f} {s.stdev(totals):.4f} {s.pstdev(totals):.4f}")
print([round(q, 3) for q in s.quantiles(totals, n=4)])
print(s.mode(["a", "b", "b"]), s.multimode([1, 1, 2, 2]))
