// A TCP relay in front of a yard that can be cut, to simulate a network failure.
import { connect, createServer } from "node:net";

/** Returns the yard under another URL. `cut` closes all connections and rejects new ones until `restore`. */
export async function relay(yard) {
  const { hostname, port } = new URL(yard.url);
  const open = new Set();
  let whole = true;
  const server = createServer((client) => {
    if (!whole) return client.destroy();
    const upstream = connect(Number(port), hostname);
    for (const [one, other] of [[client, upstream], [upstream, client]]) {
      open.add(one);
      one.pipe(other);
      one.on("error", () => other.destroy());
      one.on("close", () => {
        open.delete(one);
        other.destroy();
      });
    }
    return undefined;
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const cut = () => {
    whole = false;
    for (const socket of open) socket.destroy();
  };
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    token: yard.token,
    cut,
    restore: () => { whole = true; },
    stop: () => {
      cut();
      server.close();
    },
  };
}
