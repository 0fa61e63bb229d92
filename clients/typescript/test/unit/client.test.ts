import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";

import { ExecutionTimeoutError, MCPClient, NetworkError, ToolNotFoundError, UnexpectedAnswerError } from "../../src/index.js";

interface Seen {
  method: string | undefined;
  url: string | undefined;
  headers: IncomingMessage["headers"];
  body: unknown;
}

type Answer = (response: ServerResponse, seen: Seen, number: number) => void;

const METADATA = { executionId: "exec-1", duration: 1, timestamp: "2026-01-01T00:00:00Z" };

/** Runs a server with the given handler while `body` runs. */
async function against(answer: Answer, body: (url: string, seen: Seen[]) => Promise<void>) {
  const seen: Seen[] = [];
  const server = createServer((request, response) => {
    let text = "";
    request.on("data", (piece) => (text += piece));
    request.on("end", () => {
      const { method, url, headers } = request;
      seen.push({ method, url, headers, body: text === "" ? undefined : JSON.parse(text) });
      answer(response, seen.at(-1)!, seen.length);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    await body(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

function json(response: ServerResponse, status: number, value: unknown, headers = {}) {
  response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(value));
}

const fast = { baseDelay: 1 };

test("the custom metadata of a tool has a type", () =>
  against(
    (response) => {
      const metadata = { version: "2.1.0", custom: { pricing: "premium", sla: "99.9%", region: "us-east-1" } };
      json(response, 200, { version: "1.0", tools: [{ name: "t", description: "", inputSchema: {}, server: "s", metadata }] });
    },
    async (url) => {
      const [tool] = await new MCPClient({ baseURL: url, token: "secret" }).discoverTools();
      // Without its own type, `custom` would be unknown and this would not compile.
      const region: unknown = tool?.metadata?.custom?.["region"];
      assert.equal(region, "us-east-1");
    },
  ));

test("an execution is sent according to the protocol", () =>
  against(
    (response) => json(response, 200, { success: true, result: 3, metadata: METADATA }),
    async (url, seen) => {
      const client = new MCPClient({ baseURL: `${url}/yard/`, token: "secret" });
      const response = await client.executeTool(
        "a/b ü",
        { x: 1 },
        { timeout: 500, version: "2", priority: "high", sessionId: "s", userId: "u", content: "full" },
      );
      assert.deepEqual(response, { success: true, result: 3, metadata: METADATA });
      const { method, url: path, headers, body } = seen[0]!;
      assert.deepEqual([method, path], ["POST", "/yard/mcp/tools/a%2Fb%20%C3%BC/execute?content=full"]);
      const context = { timeout: 500, version: "2", priority: "high", sessionId: "s", userId: "u" };
      assert.deepEqual(body, { params: { x: 1 }, context });
      assert.deepEqual(
        [headers.authorization, headers.accept, headers["content-type"], headers["x-mcp-version"]],
        ["Bearer secret", "application/json", "application/json", "1.0"],
      );
    },
  ));

test("a paginated list is fetched completely", () =>
  against(
    (response, { url }) => {
      const first = !url!.includes("cursor");
      json(response, 200, first ? { tools: [{ name: "a" }], nextCursor: "after.a" } : { tools: [{ name: "b" }] });
    },
    async (url, seen) => {
      const tools = await new MCPClient({ baseURL: url }).discoverTools({ tags: ["x", "y"], q: "z", pageSize: 1 });
      assert.deepEqual(tools.map(({ name }) => name), ["a", "b"]);
      assert.deepEqual(seen.map((one) => one.url), [
        "/mcp/tools?q=z&tag=x&tag=y&limit=1",
        "/mcp/tools?q=z&tag=x&tag=y&limit=1&cursor=after.a",
      ]);
      assert.equal(seen[0]!.headers.authorization, undefined);
    },
  ));

test("a response that does not follow the protocol is quoted in the error", () =>
  against(
    (response) => response.writeHead(500, { "content-type": "text/html" }).end("<h1>Oh\n no</h1>"),
    async (url) => {
      const failed = new MCPClient({ baseURL: url }).getTool("add");
      await assert.rejects(failed, (error) => {
        assert.ok(error instanceof UnexpectedAnswerError);
        assert.equal(error.message, "GET /mcp/tools/add returned status 500: <h1>Oh no</h1>");
        assert.deepEqual([error.code, error.status], ["UNEXPECTED_ANSWER", 500]);
        return true;
      });
    },
  ));

test("a response with status 200 but without an envelope is an error", () =>
  against(
    (response, _, number) => (number === 1 ? response.writeHead(200).end("hello") : json(response, 200, null)),
    async (url) => {
      const client = new MCPClient({ baseURL: url });
      await assert.rejects(client.executeTool("add"), UnexpectedAnswerError);
      await assert.rejects(client.executeTool("add"), UnexpectedAnswerError);
    },
  ));

test("a stream that breaks off is a network error, and is retried only with a key", () =>
  against(
    (response, _, number) => {
      response.writeHead(200, { "content-type": "text/event-stream", "x-execution-id": "exec-1" });
      response.write('event: progress\ndata: {"progress":1}\n\nevent: novelty\ndata: ?\n\n');
      const result = JSON.stringify({ success: true, result: "done", metadata: METADATA });
      response.end(number === 3 ? `event: result\ndata: ${result}\n\n` : "event: result\nda");
    },
    async (url, seen) => {
      const client = new MCPClient({ baseURL: url, retry: fast });
      const heard: unknown[] = [];
      const onProgress = (progress: unknown) => void heard.push(progress);
      await assert.rejects(client.executeTool("a", {}, { onProgress }), NetworkError);
      assert.equal(seen.length, 1);
      const response = await client.executeTool("a", {}, { onProgress, idempotencyKey: "k" });
      assert.deepEqual([response.result, seen.length, heard.length], ["done", 3, 3]);
    },
  ));

test("a callback that throws cancels the execution and rejects with its error", () =>
  against(
    (response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write('event: progress\ndata: {"progress":1}\n\n');
    },
    async (url) => {
      const onProgress = () => {
        throw new RangeError("from the callback");
      };
      await assert.rejects(new MCPClient({ baseURL: url }).executeTool("a", {}, { onProgress }), RangeError);
    },
  ));

test("a silent server causes a timeout", () =>
  against(
    () => undefined,
    async (url) => {
      const client = new MCPClient({ baseURL: url, requestTimeout: 50, retry: { retries: 0 } });
      await assert.rejects(client.getTool("a"), (error) => error instanceof NetworkError && /50 ms/.test(error.message));
    },
  ));

test("an execution without a response five seconds after its timeout is rejected", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const silent = (_: string, { signal }: RequestInit) =>
    new Promise<Response>((_, reject) => signal?.addEventListener("abort", () => reject(signal.reason)));
  let over = false;
  const client = new MCPClient({ baseURL: "http://x", fetch: silent });
  const late = assert.rejects(client.executeTool("a", {}, { timeout: 100 }), ExecutionTimeoutError).then(() => (over = true));
  context.mock.timers.tick(5_099);
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(over, false);
  context.mock.timers.tick(1);
  await late;
});

test("a silent stream is rejected", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const headers = { "content-type": "text/event-stream" };
  const silent = async () => new Response(new ReadableStream(), { headers });
  const call = new MCPClient({ baseURL: "http://x", fetch: silent }).executeTool("a", {}, { onProgress: () => undefined });
  const over = assert.rejects(call, (error) => error instanceof NetworkError && /no data/.test(error.message));
  await new Promise((resolve) => setImmediate(resolve));
  context.mock.timers.tick(60_000);
  await over;
});

test("an abort during a request or a delay rejects immediately with its reason", () =>
  against(
    (response, _, number) => {
      if (number === 1) json(response, 503, {}, { "retry-after": "20" });
    },
    async (url) => {
      const client = new MCPClient({ baseURL: url });
      for (const name of ["pausing", "waiting"]) {
        const stop = new AbortController();
        const call = client.getTool(name, { signal: stop.signal });
        setTimeout(() => stop.abort(new Error(name)), 50);
        await assert.rejects(call, new Error(name));
      }
      await assert.rejects(client.getTool("x", { signal: AbortSignal.abort() }), { name: "AbortError" });
    },
  ));

test("an unreachable server is a network error with the reason", async () => {
  const client = new MCPClient({ baseURL: "http://127.0.0.1:1", retry: { retries: 0 } });
  await assert.rejects(client.discoverTools(), (error) => {
    assert.ok(error instanceof NetworkError);
    assert.match(error.message, /^GET \/mcp\/tools got no response: .+/);
    assert.equal(error.status, undefined);
    return true;
  });
});

test("a redirect is not followed, and the token is not sent elsewhere", () =>
  against(
    (response) => response.writeHead(307, { location: "http://127.0.0.1:1/" }).end(),
    async (url, seen) => {
      const client = new MCPClient({ baseURL: url, token: "t", retry: { retries: 0 } });
      await assert.rejects(client.getTool("a"), NetworkError);
      assert.equal(seen.length, 1);
    },
  ));

test("an invalid URL, token or name is rejected before anything is sent", async () => {
  for (const baseURL of ["", "tools", "ftp://x", "http://u:p@x", "http://x?y", "http://x#y"]) {
    assert.throws(() => new MCPClient({ baseURL }), TypeError, baseURL);
  }
  for (const token of ["", "a b", "a\n", "ä"]) {
    assert.throws(() => new MCPClient({ baseURL: "http://x", token }), TypeError);
  }
  const client = new MCPClient({ baseURL: "http://127.0.0.1:1" });
  for (const name of ["", ".", ".."]) await assert.rejects(client.getTool(name), TypeError);
});

test("errors contain the fields of the response", () =>
  against(
    (response) => json(response, 404, { error: { code: "TOOL_NOT_FOUND", message: "no", details: [1] }, metadata: METADATA }),
    async (url) => {
      const error = await new MCPClient({ baseURL: url }).getTool("a").catch((error: unknown) => error);
      assert.ok(error instanceof ToolNotFoundError);
      const { name, code, status, message, details, executionId, retryAfter } = error;
      assert.deepEqual(
        { name, code, status, message, details, executionId, retryAfter },
        {
          name: "ToolNotFoundError",
          code: "TOOL_NOT_FOUND",
          status: 404,
          message: "no",
          details: [1],
          executionId: "exec-1",
          retryAfter: undefined,
        },
      );
    },
  ));
