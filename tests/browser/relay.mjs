// A way to a yard that can be cut: what the browser's network does when it fails, while the yard goes on.
import { connect, createServer } from "node:net";

/** The same yard under another address. `cut` ends every connection and takes no new one until `mend`. */
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
    mend: () => { whole = true; },
    stop: () => {
      cut();
      server.close();
    },
  };
}
