import bisect, heapq, math, random

random.seed(7)
print([random.randint(1, 6) for _ in range(5)], random.choice("abc"), round(random.random(), 6))
print(math.isqrt(99), math.comb(5, 2), round(math.log2(10), 6), math.inf > 1, math.gcd(12, 18))
heap = [5, 1, 4]
heapq.heapify(heap)
print(heapq.nsmallest(2, heap), bisect.bisect([1, 3, 5], 4), divmod(-7, 2), round(2.5), -7 // 2)
