import json

page = await list_orders(limit=1)
print(json.dumps(page["orders"][0], indent=2, sort_keys=True))
print(json.loads('{"a": [1, 2.5, null, true], "b": "\\u00e9"}'))
try:
    json.loads("{broken")
except json.JSONDecodeError as error:
    print("not JSON:", error.msg, error.pos)
