import sqlite3

orders = (await list_orders(limit=50))["orders"]
base = sqlite3.connect(":memory:")
base.execute("create table orders (id integer, sku text, total real)")
base.executemany("insert into orders values (:id, :sku, :total)", orders)
for row in base.execute("select sku, count(*), round(sum(total), 2) from orders group by sku order by 3 desc"):
    print(row)
