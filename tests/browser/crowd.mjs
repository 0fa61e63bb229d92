// A server over stdio with very many tools, and some that are odd on purpose: what it says is made up here, but everything
// goes through the real yard.
import { createInterface } from "node:readline";
import { HOSTILE, manyTools, oddTools } from "./mock.mjs";

const definitions = [...oddTools(), ...manyTools(Number(process.argv[2] ?? 0))].map((tool) => tool.definition);
const say = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
const PAGE = 1_000;

function answer(method, params) {
  switch (method) {
    case "initialize":
      return { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "crowd", version: "1.0.0" } };
    case "ping":
      return {};
    case "tools/list": {
      const from = Number(params?.cursor ?? 0);
      const more = from + PAGE < definitions.length ? { nextCursor: String(from + PAGE) } : {};
      return { tools: definitions.slice(from, from + PAGE), ...more };
    }
    case "tools/call":
      if (params.name === "huge") return { content: [{ type: "text", text: HOSTILE + "y".repeat(5_000_000) }] };
      if (params.name === "hostile") return { content: [{ type: "text", text: HOSTILE }], structuredContent: { [HOSTILE]: HOSTILE } };
      return { content: [{ type: "text", text: JSON.stringify(params.arguments ?? null) }] };
    default:
      return undefined;
  }
}

process.stderr.write(`${HOSTILE}\n`);
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined || !method) continue;
  const result = answer(method, params);
  if (result) say({ id, result });
  else say({ id, error: { code: -32601, message: "no such method" } });
}
