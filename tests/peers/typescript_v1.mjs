// The official TypeScript SDK, version 1 (legacy era only), as a client of Toolyard.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { main } from "./checks.mjs";
import { endpoint, tap } from "./wire.mjs";

await main(async ({ elicit, token }) => {
  const transport = endpoint({ StdioClientTransport, StreamableHTTPClientTransport, token });
  const { sent, progressOnWire, codeOnWire, version } = tap(transport);
  const client = new Client(
    { name: "toolyard-peers-v1", version: "1.0.0" },
    { capabilities: elicit ? { elicitation: {} } : {} },
  );
  const errors = [];
  client.onerror = (error) => errors.push(error);
  if (elicit) client.setRequestHandler(ElicitRequestSchema, ({ params }) => elicit(params));
  await client.connect(transport);
  return {
    client,
    call: (name, given, onprogress) => client.callTool({ name, arguments: given }, undefined, { onprogress }),
    version,
    sent,
    progressOnWire,
    codeOnWire,
    errors,
    close: () => client.close(),
  };
});
