// The transport of the TypeScript clients, with a tap that records all messages.

/** A transport to Toolyard: a process of our own over stdio, or the HTTP server that `run` started. */
export function endpoint({ StdioClientTransport, StreamableHTTPClientTransport, token, args = ["stdio"], env }) {
  const { TOOLYARD_BIN, PEER_URL, PEER_TOKEN } = process.env;
  if (process.argv[4] === "stdio") {
    return new StdioClientTransport({ command: TOOLYARD_BIN, args, env });
  }
  const headers = { Authorization: `Bearer ${token ?? PEER_TOKEN}` };
  return new StreamableHTTPClientTransport(new URL(PEER_URL), { requestInit: { headers } });
}

/** Records the methods sent, the progress and error codes that arrive, and the version that `initialize` settled on. */
export function tap(transport) {
  const sent = [];
  let progress = 0;
  let code;
  let version;
  const send = transport.send.bind(transport);
  transport.send = (message, options) => {
    sent.push(...[message].flat().flatMap(({ method }) => method ?? []));
    return send(message, options);
  };
  const setProtocolVersion = transport.setProtocolVersion?.bind(transport);
  transport.setProtocolVersion = (agreed) => {
    version = agreed;
    setProtocolVersion?.(agreed);
  };
  let receive;
  Object.defineProperty(transport, "onmessage", {
    get: () => receive,
    set: (handler) => {
      receive = handler && ((message, extra) => {
        if (message.method === "notifications/progress") progress += 1;
        if (message.error) code = message.error.code;
        return handler(message, extra);
      });
    },
  });
  return { sent, progressOnWire: () => progress, codeOnWire: () => code, version: () => version };
}
