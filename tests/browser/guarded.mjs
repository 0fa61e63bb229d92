// An MCP server over Streamable HTTP that requires OAuth 2.1, with its authorization server in the same process: dynamic
// client registration, a consent page, and PKCE. Prints its URL when it listens.
import { createHash, randomUUID } from "node:crypto";
import { createServer } from "node:http";

const clients = new Map();
const codes = new Map();
const tokens = new Set();
let url;

const TOOLS = [{ name: "whoami", description: "Returns the user.", inputSchema: { type: "object" }, annotations: { readOnlyHint: true } }];

function mcp({ method, params }) {
  switch (method) {
    case "initialize":
      return { protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo: { name: "guarded", version: "1.0.0" } };
    case "ping":
      return {};
    case "tools/list":
      return { tools: TOOLS };
    case "tools/call":
      return { content: [{ type: "text", text: `${params.name}: authorized user` }] };
    default:
      return undefined;
  }
}

async function body(request) {
  let text = "";
  for await (const part of request) text += part;
  return text;
}

const routes = {
  "/mcp": async (request, response) => {
    const token = request.headers.authorization?.replace(/^Bearer /, "");
    if (!tokens.has(token)) {
      const where = `Bearer resource_metadata="${url}/.well-known/oauth-protected-resource/mcp"`;
      return response.writeHead(401, { "www-authenticate": where }).end();
    }
    if (request.method !== "POST") return response.writeHead(405).end();
    const message = JSON.parse(await body(request));
    if (message.id === undefined) return response.writeHead(202).end();
    const result = mcp(message);
    const answer = result ? { result } : { error: { code: -32601, message: "method not found" } };
    return say(response, 200, { jsonrpc: "2.0", id: message.id, ...answer });
  },
  "/.well-known/oauth-protected-resource/mcp": (_request, response) =>
    say(response, 200, { resource: `${url}/mcp`, authorization_servers: [url] }),
  "/.well-known/oauth-authorization-server": (_request, response) =>
    say(response, 200, {
      issuer: url, authorization_endpoint: `${url}/authorize`, token_endpoint: `${url}/token`, registration_endpoint: `${url}/register`,
      code_challenge_methods_supported: ["S256"], response_types_supported: ["code"], grant_types_supported: ["authorization_code", "refresh_token"],
    }),
  "/register": async (request, response) => {
    const metadata = JSON.parse(await body(request));
    const client_id = randomUUID();
    clients.set(client_id, metadata.redirect_uris);
    say(response, 201, { ...metadata, client_id });
  },
  "/authorize": (request, response) => {
    const query = new URL(request.url, url).searchParams;
    if (!clients.get(query.get("client_id"))?.includes(query.get("redirect_uri"))) return response.writeHead(400).end("unknown client");
    const code = randomUUID();
    codes.set(code, Object.fromEntries(query));
    const page = `<!doctype html><title>Log in</title><form method="post" action="/consent"><input type="hidden" name="code" value="${code}"><button>Allow</button></form>`;
    return response.writeHead(200, { "content-type": "text/html" }).end(page);
  },
  "/consent": async (request, response) => {
    const code = new URLSearchParams(await body(request)).get("code");
    const { redirect_uri, state } = codes.get(code);
    const to = new URL(redirect_uri);
    for (const [name, value] of Object.entries({ code, state, iss: url })) to.searchParams.set(name, value);
    response.writeHead(302, { location: to.href }).end();
  },
  "/token": async (request, response) => {
    const form = new URLSearchParams(await body(request));
    const given = codes.get(form.get("code"));
    codes.delete(form.get("code"));
    const proof = createHash("sha256").update(form.get("code_verifier") ?? "").digest("base64url");
    if (!given || proof !== given.code_challenge) return say(response, 400, { error: "invalid_grant" });
    const access_token = randomUUID();
    tokens.add(access_token);
    return say(response, 200, { access_token, token_type: "Bearer", expires_in: 3_600 });
  },
};

function say(response, status, value) {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
}

const server = createServer((request, response) => {
  const route = routes[new URL(request.url, "http://x").pathname];
  if (!route) return response.writeHead(404).end();
  return Promise.resolve(route(request, response)).catch(() => response.destroy());
});
server.listen(0, "127.0.0.1", () => {
  url = `http://127.0.0.1:${server.address().port}`;
  console.log(url);
});
