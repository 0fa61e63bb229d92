// The official TypeScript SDK, version 1 (legacy era only), as a client of the tester.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import {
  CreateMessageRequestSchema, ElicitRequestSchema, ListRootsRequestSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { answer, args, capabilities, drive, env } from "./drive.mjs";
import { endpoint, tap } from "./wire.mjs";

await drive(async () => {
  const transport = endpoint({ StdioClientTransport, StreamableHTTPClientTransport, args, env });
  const { version } = tap(transport);
  const client = new Client({ name: "toolyard-tester-v1", version: "1.0.0" }, { capabilities });
  for (const schema of [CreateMessageRequestSchema, ElicitRequestSchema, ListRootsRequestSchema]) {
    client.setRequestHandler(schema, answer);
  }
  await client.connect(transport);
  return { client, call: (name, given) => client.callTool({ name, arguments: given }), version };
});
