import builtins, gc, json, random
word = "planted-" + "4711"
if hasattr(builtins, "planted") or hasattr(json, "planted") or hasattr(sys, "planted") or json.dumps is None:
    escaped("found data of another program in a module")
for item in gc.get_objects():
    if isinstance(item, (str, bytes)) and word in str(item) or isinstance(item, list) and item and item[0] == word * 1000:
        escaped("found data of another program in memory")
first = random.Random(1).random()
if random.random() == first:
    escaped("got the random numbers of another program")
held()
