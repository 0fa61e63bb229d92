def lookup(table, key):
    try:
        return table[key]
    except KeyError:
        raise LookupError(f"{key!r} is unknown") from None

lookup({"a": 1}, "b")
