// The official TypeScript SDK, version 2 (both eras; the mode is the second argument), as a client of the tester.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { answer, args, capabilities, drive, env } from "./drive.mjs";
import { endpoint } from "./wire.mjs";

const modes = { legacy: "legacy", modern: { pin: "2026-07-28" } };

await drive(async () => {
  const transport = endpoint({ StdioClientTransport, StreamableHTTPClientTransport, args, env });
  const client = new Client(
    { name: "toolyard-tester-v2", version: "1.0.0" },
    { capabilities, versionNegotiation: { mode: modes[process.argv[3]] } },
  );
  for (const method of ["sampling/createMessage", "elicitation/create", "roots/list"]) {
    client.setRequestHandler(method, answer);
  }
  await client.connect(transport);
  return {
    client,
    call: (name, given) => client.callTool({ name, arguments: given }),
    version: () => client.getNegotiatedProtocolVersion(),
  };
});
