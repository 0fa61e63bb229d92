import builtins, gc, json, random
word = "planted-" + "4711"
if hasattr(builtins, "planted") or hasattr(json, "planted") or hasattr(sys, "planted") or json.dumps is None:
    escaped("what another program left in a module")
for one in gc.get_objects():
    if isinstance(one, (str, bytes)) and word in str(one) or isinstance(one, list) and one and one[0] == word * 1000:
        escaped("what another program left in memory")
first = random.Random(1).random()
if random.random() == first:
    escaped("the random numbers of another program")
held()
