import csv, io

orders = (await list_orders(limit=4))["orders"]
out = io.StringIO()
writer = csv.DictWriter(out, fieldnames=["id", "sku", "total"], extrasaction="ignore", lineterminator="\n")
writer.writeheader()
writer.writerows(orders)
print(out.getvalue(), end="")
rows = list(csv.reader(io.StringIO('a,"b, c",d\n1,"say ""hi""",3\n')))
print(rows)
