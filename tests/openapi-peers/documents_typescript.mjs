// Calls tools through the official TypeScript SDK, which validates results against output schemas. Reads the plan from
// standard input and writes one JSON line per result to standard output. Usage: node documents_typescript.mjs FOLDER, where
// FOLDER contains node_modules.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(`${process.argv[2]}/`);
const load = (name) => import(pathToFileURL(require.resolve(name)));
const { Client } = await load("@modelcontextprotocol/sdk/client/index.js");
const { StreamableHTTPClientTransport } = await load("@modelcontextprotocol/sdk/client/streamableHttp.js");

// Maximum number of calls that Prism handles in parallel.
const AT_ONCE = 8;

async function call(client, source, name, given) {
  try {
    const result = await client.callTool({ name, arguments: given }, undefined, { timeout: 300_000 });
    const status = result._meta?.["dev.toolyard/http"]?.status;
    const text = String(result.content?.[0]?.text ?? "").slice(0, 300);
    return { source, name, isError: Boolean(result.isError), status, text };
  } catch (error) {
    return { source, name, thrown: String(error.message).slice(0, 600) };
  }
}

async function callAll(url, source, calls) {
  const client = new Client({ name: "toolyard-openapi-peers", version: "1.0.0" });
  await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/servers/${source}/mcp`)));
  let cursor;
  do {
    // The SDK only keeps the schemas of the last page, so the tools of a page are called before the next page is read.
    const page = await client.listTools({ cursor });
    const there = new Set(page.tools.map((tool) => tool.name));
    const waiting = calls.filter((one) => there.has(one.name)).flatMap((one) => Array(one.times).fill(one));
    const worker = async () => {
      for (let one = waiting.shift(); one; one = waiting.shift()) {
        console.log(JSON.stringify(await call(client, source, one.name, one.arguments)));
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    cursor = page.nextCursor;
  } while (cursor);
  await client.close();
}

let text = "";
for await (const piece of process.stdin) text += piece;
const { url, plan } = JSON.parse(text);
for (const [source, calls] of Object.entries(plan)) await callAll(url, source, calls);
process.exit(0);
