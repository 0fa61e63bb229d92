value, name = 1234567.891, "pi"
print(f"{value:,.2f} {value:e} {int(value):#x} {0.256:.1%} {name!r:>6} {name:^10}|{value=}")
print("{:<8}|{:>8}|{:08.3f}".format("left", "right", 3.14159), "%5d|%-5s|%s" % (42, "ab", None))
for row in [("sku", "total"), ("A-1", 9.5)]:
    print("".join(str(cell).ljust(10) for cell in row).rstrip())
