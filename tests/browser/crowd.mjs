// A stdio server with very many tools, some of them malformed on purpose. The yard in front of it is real.
import { createInterface } from "node:readline";
import { HOSTILE, manyTools, oddTools } from "./mock.mjs";

const reads = { annotations: { readOnlyHint: true } };
const own = [
  { name: "unsaid", description: "A tool without any schema.", ...reads },
  { name: "ask_model", description: "Asks the client's model.", inputSchema: { type: "object" }, ...reads },
  { name: "ask_person", description: "Asks the user.", inputSchema: { type: "object" }, ...reads },
  {
    name: "flood", description: "Reports progress very often.", ...reads,
    inputSchema: { type: "object", properties: { times: { type: "integer" }, every_ms: { type: "integer" }, at_once: { type: "integer" } }, required: ["times"] },
  },
];
// `plain` omits the malformed tools.
const plain = process.argv[2] === "plain";
const count = Number(process.argv[2] ?? 0) || 0;
const endless = { name: "endless", description: `${HOSTILE}${"d".repeat(5_000_000)}`, inputSchema: { type: "object" }, ...reads };
const definitions = [...(plain ? [] : oddTools().map((tool) => tool.definition)), ...own, ...(count ? [endless] : []), ...manyTools(count).map((tool) => tool.definition)];
const say = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
const PAGE = 1_000;
const QUESTIONS = {
  ask_model: ["sampling/createMessage", { messages: [{ role: "user", content: { type: "text", text: "What is the capital of <b>France</b>?" } }], maxTokens: 20 }],
  ask_person: ["elicitation/create", { message: "Which <i>size</i>?", requestedSchema: { type: "object", properties: { size: { type: "string", enum: ["small", "large"] }, wrapped: { type: "boolean", default: true } }, required: ["size"] } }],
};
const asked = new Map();
let questions = 0;

/** Sends a request to the client and returns its response. */
function ask([method, params]) {
  const id = `question-${++questions}`;
  say({ id, method, params });
  return new Promise((answered) => asked.set(id, answered));
}

async function call({ name, arguments: given = {}, _meta }) {
  const text = (words) => ({ content: [{ type: "text", text: words }] });
  if (name in QUESTIONS) {
    const { result, error } = await ask(QUESTIONS[name]);
    return text(`the answer was ${JSON.stringify(result ?? error)}`);
  }
  switch (name) {
    case "huge":
      return text(HOSTILE + "y".repeat(5_000_000));
    case "hostile":
      return { ...text(HOSTILE), structuredContent: { [HOSTILE]: HOSTILE } };
    case "flood": {
      const { times, every_ms = 10, at_once = 1 } = given;
      for (let at = 0; at < times; at += at_once) {
        const until = Math.min(times, at + at_once);
        for (let each = at + 1; each <= until; each++) say({ method: "notifications/progress", params: { progressToken: _meta?.progressToken, progress: each, total: times } });
        await new Promise((done) => setTimeout(done, every_ms));
      }
      return text(`${times} times`);
    }
    default:
      return text(JSON.stringify(given));
  }
}

async function answer(method, params) {
  switch (method) {
    case "initialize":
      return { protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo: { name: "crowd", version: "1.0.0" } };
    case "ping":
      return {};
    case "tools/list": {
      const from = Number(params?.cursor ?? 0);
      const more = from + PAGE < definitions.length ? { nextCursor: String(from + PAGE) } : {};
      return { tools: definitions.slice(from, from + PAGE), ...more };
    }
    case "tools/call":
      return call(params);
    default:
      return undefined;
  }
}

process.stderr.write(`${HOSTILE}\n`);
for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line);
  const { id, method, params } = message;
  if (!method) {
    asked.get(id)?.(message);
    asked.delete(id);
  } else if (id !== undefined) {
    // Not awaited: a call can wait for a response that arrives on the same stream.
    void answer(method, params).then((result) => say(result ? { id, result } : { id, error: { code: -32601, message: "method not found" } }));
  }
}
