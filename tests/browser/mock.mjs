// A mock yard that serves the built page and the control protocol. It produces on demand what a real yard does not: ten
// thousand tools, hostile text, a flood of events, dropped sockets, expired tokens.
import { createServer } from "node:http";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { WebSocketServer } from "ws";

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data: blob:; " +
  "media-src data: blob:; base-uri 'none'; frame-ancestors 'none'; form-action 'none'";
const KINDS = { html: "text/html; charset=utf-8", js: "text/javascript; charset=utf-8", css: "text/css; charset=utf-8" };
export const HOSTILE = `<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>`;

const object = (properties = {}, required = []) => ({ type: "object", properties, required });
const tool = (serverName, name, more = {}) => {
  const { inputSchema = object(), description = "", annotations, ...rest } = more;
  const definition = { name, description, inputSchema, ...(annotations ? { annotations } : {}) };
  return {
    name, fullName: `mcp__${serverName}__${name}`, serverName, description, inputSchema, tags: [], permissions: [], definition,
    ...(annotations ? { annotations } : {}), ...rest,
  };
};
const reads = { readOnlyHint: true, openWorldHint: false };

/** Returns tools that are malformed on purpose. */
export function oddTools() {
  const tree = { $defs: { node: { type: "object", properties: { name: { type: "string" }, children: { type: "array", items: { $ref: "#/$defs/node" } } }, required: ["name"] } }, type: "object", properties: { root: { $ref: "#/$defs/node" } }, required: ["root"] };
  const wide = object(Object.fromEntries(Array.from({ length: 3_000 }, (_, at) => [`field_${at}`, { type: "string" }])));
  return [
    tool("odd", "hostile", { title: HOSTILE, description: HOSTILE, annotations: { ...reads, title: HOSTILE } }),
    tool("odd", "recursive", { description: "A schema that contains itself.", inputSchema: tree, annotations: reads }),
    tool("odd", "loop", { description: "A reference to itself.", inputSchema: { $ref: "#" }, annotations: reads }),
    tool("odd", "wide", { description: "Three thousand parameters.", inputSchema: wide, annotations: reads }),
    tool("odd", "bare", { description: "A minimal schema.", inputSchema: { type: "object" }, annotations: reads }),
    tool("odd", "stubborn", { description: "A pattern with catastrophic backtracking.", annotations: reads, inputSchema: object({ text: { type: "string", pattern: "^(a+)+$" } }, ["text"]) }),
    tool("odd", "huge", { description: "Returns 5 MB.", annotations: reads }),
    tool("odd", "chatty", { description: "Streams a thousand chunks.", annotations: reads }),
    tool("odd", "long", { description: "x".repeat(100_000), annotations: reads }),
    tool("odd", "precise", { description: "Returns a number with many digits.", annotations: reads }),
  ];
}

/** Returns a tool with unusable schemas. Only `mcp_tool` reports the problems. */
export function unusable() {
  return tool("odd", "unusable", { description: "Invalid schemas.", inputSchema: { type: "object", properties: { text: { pattern: "(" } } }, annotations: reads });
}

export function manyTools(count) {
  const verbs = ["read", "write", "list", "search", "create", "delete", "update", "send"];
  const nouns = ["file", "issue", "page", "message", "invoice", "branch", "event", "table", "image", "user"];
  return Array.from({ length: count }, (_, at) => {
    const [verb, noun] = [verbs[at % verbs.length], nouns[Math.floor(at / 8) % nouns.length]];
    return tool(`server-${String(Math.floor(at / 100)).padStart(3, "0")}`, `${verb}_${noun}_${at}`, {
      description: `Runs ${verb} on the ${noun} number ${at}.`, tags: [noun],
      permissions: verb === "delete" ? ["destroy"] : [],
      inputSchema: object({ id: { type: "integer", description: "The ID." }, note: { type: "string" } }, ["id"]),
    });
  });
}

export const later = (ms) => new Promise((done) => setTimeout(done, ms));

/** Starts a mock yard on a free port. `assets` is the directory of the built page. */
export async function startMock({ assets, tools = oddTools(), token = "secret", cluster = null }) {
  // `cluster` has the response to `mcp_replicas`, and the states of every server at the other replicas.
  const yard = { token, tools, cluster, sockets: new Set(), seq: 100, journal: [], calls: new Map(), asked: [], missed: false };
  const http = createServer((request, response) => {
    const path = request.url.split("?")[0];
    if (path.startsWith("/mcp/")) {
      const fine = request.headers.authorization === `Bearer ${yard.token}`;
      response.writeHead(fine ? (path === "/mcp/tools" ? 200 : 404) : 401, { "content-type": "application/json" }).end("{}");
      return;
    }
    const name = path === "/" ? "index.html" : path.slice(1);
    try {
      const body = readFileSync(join(assets, name));
      response.writeHead(200, { "content-type": KINDS[name.split(".").at(-1)], "content-security-policy": POLICY }).end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  const sockets = new WebSocketServer({ server: http, path: "/control", handleProtocols: () => "toolyard.control.v1" });
  sockets.on("connection", (socket, request) => meet(yard, socket, request));
  await new Promise((done) => http.listen(0, "127.0.0.1", done));
  yard.url = `http://127.0.0.1:${http.address().port}`;
  yard.emit = (event, fields) => {
    const message = { type: "event", event, seq: ++yard.seq, at: new Date().toISOString(), ...fields };
    yard.journal.push(message);
    for (const socket of yard.sockets) if (socket.events?.has(event)) socket.send(JSON.stringify(message));
    return message;
  };
  yard.drop = (code = 1011) => {
    for (const socket of yard.sockets) socket.close(code);
  };
  yard.stop = () => {
    for (const socket of yard.sockets) socket.terminate();
    sockets.close();
    http.close();
    http.closeAllConnections();
  };
  return yard;
}

function meet(yard, socket, request) {
  const enter = (given) => {
    if (given !== yard.token) return socket.close(4401);
    yard.sockets.add(socket);
    socket.on("close", () => yard.sockets.delete(socket));
    const principal = { name: "owner", manage: true, observe: true };
    return socket.send(JSON.stringify({ type: "welcome", protocol: 1, server: { name: "toolyard", version: "0.1.0" }, principal, ...(yard.cluster ? { replica: yard.cluster.replicas[0].name } : {}), now: new Date().toISOString() }));
  };
  const offered = (request.headers["sec-websocket-protocol"] ?? "").split(/,\s*/).find((one) => one.startsWith("toolyard.token."));
  if (offered) enter(Buffer.from(offered.slice(15), "base64url").toString());
  socket.on("message", async (data) => {
    const order = JSON.parse(data);
    if (order.subtype === "hello") return enter(order.token);
    yard.asked.push(order);
    // `"@NUMBER"` becomes NUMBER, for numbers that a double cannot represent.
    const say = (type, fields) => socket.send(JSON.stringify({ type, id: order.id, ...fields }).replaceAll(/"@(-?\d[\d.eE+-]*)"/g, "$1"));
    try {
      const response = await (ANSWERS[order.subtype] ?? refuse)(yard, order, say, socket);
      say("response", { subtype: order.subtype, response });
      if (order.subtype === "subscribe" && order.after !== undefined && !yard.missed) {
        for (const event of yard.journal) if (event.seq > order.after && socket.events.has(event.event)) socket.send(JSON.stringify(event));
      }
    } catch (error) {
      say("error", { subtype: order.subtype, error: { code: error.code ?? "INTERNAL_ERROR", message: error.message } });
    }
  });
}

function refuse(_yard, order) {
  throw Object.assign(new Error(`unknown subtype ${order.subtype}`), { code: "VALIDATION_ERROR" });
}

const of = (yard, name) => yard.tools.filter((one) => !name || one.serverName === name);
const serversOf = (yard) => [...new Set(yard.tools.map((one) => one.serverName))].map((name) => ({
  name, state: "ready", transport: "stdio", era: "legacy", protocolVersion: "2025-11-25", serverInfo: { name, version: "1.0.0" },
  auth: "unsupported", tools: of(yard, name).length, resources: 0, templates: 0, prompts: 0, warnings: [], since: new Date(Date.now() - 1e6).toISOString(),
  ...(yard.cluster ? { replicas: yard.cluster.servers } : {}),
}));

const ANSWERS = {
  mcp_servers: (yard) => ({ servers: serversOf(yard) }),
  mcp_tools: (yard, order) => ({ serverName: order.server_name ?? null, tools: of(yard, order.server_name), count: of(yard, order.server_name).length }),
  mcp_tool: (yard, order) => {
    const found = yard.tools.find((one) => one.fullName === order.tool) ?? refuse(yard, order);
    const problems = { schemaProblem: `/properties/text: "(" is not a pattern ${HOSTILE}`, outputSchemaProblem: "it is not a schema" };
    return { tool: { ...found, ...(found.name === "unusable" ? problems : {}) } };
  },
  mcp_list: (yard) => ({ tools: {}, resources: {}, resource_templates: {}, auth_statuses: Object.fromEntries(serversOf(yard).map((one) => [one.name, one.auth])) }),
  mcp_prompts: () => ({ serverName: null, prompts: [], count: 0 }),
  mcp_history: (yard) => ({ calls: [...yard.calls.values()].reverse().slice(0, 200) }),
  mcp_replicas: (yard) => ({ store: yard.cluster.store, replicas: yard.cluster.replicas }),
  mcp_cancel: () => ({ cancelled: true }),
  mcp_answer: () => ({}),
  mcp_transcript: (_yard, order) => ({ serverName: order.server_name, messages: [] }),
  mcp_stderr: (_yard, order) => ({ serverName: order.server_name, lines: [HOSTILE] }),
  subscribe: (yard, order, _say, socket) => {
    socket.events = new Set(order.events);
    return { subscribed: order.events, seq: yard.seq, missed: yard.missed };
  },
  mcp_call: async (yard, order, say) => {
    const call = { id: `exec-${order.id}-${yard.calls.size}`, thing: "tool", subject: order.tool, serverName: "odd", principal: "owner", sessionId: order.session_id, front: "control", startedAt: new Date().toISOString(), status: "running" };
    yard.calls.set(call.id, call);
    yard.emit("call_started", { call });
    const result = await answer(yard, order, say);
    Object.assign(call, { status: "succeeded", durationMs: 5 });
    yard.emit("call_ended", { call: { ...call } });
    return { executionId: call.id, durationMs: 5, result };
  },
};

async function answer(yard, order, say) {
  const text = (words) => ({ content: [{ type: "text", text: words }] });
  switch (order.tool) {
    case "mcp__odd__huge":
      return { content: [{ type: "text", text: `${HOSTILE}${"y".repeat(5_000_000)}` }], structuredContent: { long: "z".repeat(5_000_000), list: Array.from({ length: 50_000 }, (_, at) => ({ at, name: `row ${at}` })) } };
    case "mcp__odd__chatty":
      for (let at = 0; at < 1_000; at++) {
        say("progress", { progress: at, total: 1_000, message: `${at} of it` });
        say("chunk", { chunk: `word ${at} ` });
      }
      while (yard.holding) await later(20);
      return text("done talking");
    case "mcp__odd__precise":
      return { content: [{ type: "text", text: '{"price": 0.10}' }], structuredContent: { big: "@12345678901234567890", far: "@1e400", whole: "@1.0", price: "@0.10" } };
    default:
      return text(JSON.stringify(order.arguments));
  }
}
