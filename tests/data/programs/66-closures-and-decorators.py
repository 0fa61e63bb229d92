import functools, inspect

def counted(function):
    @functools.wraps(function)
    async def wrapper(*args, **kwargs):
        wrapper.calls += 1
        return await function(*args, **kwargs)
    wrapper.calls = 0
    return wrapper

@counted
async def name_of(number):
    """Looks a name up."""
    return (await get_customer(number))["name"]

print([await name_of(number) for number in (1, 2)], name_of.calls, name_of.__doc__)
print(inspect.iscoroutinefunction(name_of), str(inspect.signature(name_of)))
def adder():
    total = 0
    def add(value):
        nonlocal total
        total += value
        return total
    return add
add = adder()
add(2)
print(add(3))
