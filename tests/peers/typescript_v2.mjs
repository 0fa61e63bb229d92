// The official TypeScript SDK, version 2 (both eras; the mode is the second argument), as a client of Toolyard.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { main } from "./checks.mjs";
import { endpoint, tap } from "./wire.mjs";

const modes = { legacy: "legacy", auto: "auto", modern: { pin: "2026-07-28" } };
const mode = modes[process.argv[3]];

await main(async ({ elicit, token }) => {
  const transport = endpoint({ StdioClientTransport, StreamableHTTPClientTransport, token });
  const { sent, progressOnWire, codeOnWire } = tap(transport);
  const client = new Client(
    { name: "toolyard-peers-v2", version: "1.0.0" },
    { capabilities: elicit ? { elicitation: { form: {} } } : {}, versionNegotiation: { mode } },
  );
  const errors = [];
  client.onerror = (error) => errors.push(error);
  if (elicit) client.setRequestHandler("elicitation/create", ({ params }) => elicit(params));
  await client.connect(transport);
  return {
    client,
    call: (name, given, onprogress) => client.callTool({ name, arguments: given }, { onprogress }),
    version: () => client.getNegotiatedProtocolVersion(),
    sent,
    progressOnWire,
    codeOnWire,
    errors,
    close: () => client.close(),
  };
});
