import socket
def reach(family, address):
    with socket.socket(family, socket.SOCK_DGRAM) as connection:
        connection.connect(address)
for family, address in ((socket.AF_INET, ("127.0.0.1", 9)), (socket.AF_INET, ("192.0.2.1", 9)), (socket.AF_INET6, ("::1", 9))):
    attempt("has a route to %s" % address[0], reach, family, address)
try:
    names = [name for _, name in socket.if_nameindex()]
except OSError:
    names = []
if set(names) - {"lo"}:
    escaped("sees the interfaces %s" % names)
held()
