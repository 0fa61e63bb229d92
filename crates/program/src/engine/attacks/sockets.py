import socket
def make(*args):
    socket.socket(*args).close()
families = {"inet": socket.AF_INET, "inet6": socket.AF_INET6, "unix": socket.AF_UNIX, "netlink": socket.AF_NETLINK, "packet": socket.AF_PACKET}
for name, family in families.items():
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW):
        attempt("created a socket of the family " + name, make, family, kind)
attempt("created a socket pair", socket.socketpair)
held()
