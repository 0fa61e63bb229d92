import builtins, gc, json, random, sys
SECRET = "planted-%s" % 4711
builtins.planted = json.planted = sys.planted = SECRET
json.dumps = None
random.seed(1)
copies = [SECRET * 1000 for _ in range(100)]
print("planted")
