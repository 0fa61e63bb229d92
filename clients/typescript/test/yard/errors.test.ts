import assert from "node:assert/strict";
import { test } from "node:test";

import * as library from "../../src/index.js";
import { client, failing, fresh, yard } from "./yard.js";

type Class = abstract new (...args: never[]) => library.MCPError;

async function caught(call: Promise<unknown>): Promise<library.MCPError> {
  const error = await call.then(
    () => assert.fail("it went well"),
    (error: unknown) => error,
  );
  assert.ok(error instanceof library.MCPError, String(error));
  return error;
}

async function expect(call: Promise<unknown>, kind: Class, code: string, status: number | undefined) {
  const error = await caught(call);
  assert.deepEqual([error.constructor, error.code, error.status], [kind, code, status]);
  assert.notEqual(error.message, "");
  if (status !== undefined) assert.match(error.executionId ?? "", /./);
  return error;
}

test("a tool that is not there", async () => {
  await expect(client().executeTool("no_such_tool"), library.ToolNotFoundError, "TOOL_NOT_FOUND", 404);
  await expect(client().getTool("../executions"), library.ToolNotFoundError, "TOOL_NOT_FOUND", 404);
});

test("a version of a tool that is not there", async () => {
  const call = client().executeTool("add", { a: 1, b: 2 }, { version: "9.9.9" });
  await expect(call, library.ToolNotFoundError, "TOOL_NOT_FOUND", 404);
});

test("an execution or an address that is not there", async () => {
  await expect(client().executions.get("exec-0"), library.NotFoundError, "NOT_FOUND", 404);
  await expect(client().executions.cancel("exec-0"), library.NotFoundError, "NOT_FOUND", 404);
  await expect(client().request("GET", "/mcp/nothing"), library.NotFoundError, "NOT_FOUND", 404);
});

test("parameters that do not fit the schema, each with its place", async () => {
  const call = client().executeTool("add", { a: "1" });
  const error = await expect(call, library.ValidationError, "VALIDATION_ERROR", 400);
  assert.ok(error instanceof library.ValidationError);
  assert.deepEqual(error.violations.map(({ pointer, provided }) => [pointer, provided]).sort(), [
    ["/a", "1"],
    ["/b", null],
  ]);
});

test("a version of the protocol that is not spoken", async () => {
  const call = client().request("GET", "/mcp/tools", { headers: { "X-MCP-Version": "9.9" } });
  const error = await expect(call, library.ValidationError, "VALIDATION_ERROR", 400);
  assert.deepEqual((error.details as { supported: unknown }).supported, ["1.0"]);
});

test("a key that was used for something else", async () => {
  const idempotencyKey = fresh();
  await client().executeTool("add", { a: 1, b: 2 }, { idempotencyKey });
  const call = client().executeTool("add", { a: 1, b: 3 }, { idempotencyKey });
  await expect(call, library.ValidationError, "VALIDATION_ERROR", 409);
});

test("a token that is wrong, expired or missing", async () => {
  const reason = async (token: string | undefined) => {
    const options = token === undefined ? { baseURL: yard.url } : { baseURL: yard.url, token };
    const call = new library.MCPClient(options).discoverTools();
    const error = await expect(call, library.AuthenticationError, "AUTHENTICATION_ERROR", 401);
    return (error.details as { reason: string }).reason;
  };
  const reasons = [await reason("wrong"), await reason(yard.tokens.expired), await reason(undefined)];
  assert.deepEqual(reasons, ["token_unknown", "token_expired", "token_missing"]);
});

test("a permission that is lacking", async () => {
  const plain = client({ token: yard.tokens.plain });
  await expect(plain.executeTool("admin_report"), library.PermissionDeniedError, "PERMISSION_ERROR", 403);
  await client().executeTool("admin_report");
});

test("more calls than the rate allows", async () => {
  const slow = client({ token: yard.tokens.slow, retry: { retries: 0 } });
  const outcomes = await Promise.allSettled([1, 2, 3, 4].map((a) => slow.executeTool("add", { a, b: 1 })));
  const refused = outcomes.find((outcome) => outcome.status === "rejected");
  assert.ok(refused);
  const error = await expect(Promise.reject(refused.reason), library.RateLimitError, "RATE_LIMIT_ERROR", 429);
  assert.ok((error.retryAfter ?? 0) >= 1, String(error.retryAfter));
});

test("parameters that are too large", async () => {
  const call = client().executeTool("stream_words", { text: "x".repeat(300_000) });
  await expect(call, library.PayloadTooLargeError, "PAYLOAD_TOO_LARGE", 413);
});

test("a body of another kind", async () => {
  const headers = { "Content-Type": "text/plain" };
  const call = client().request("POST", "/mcp/tools/add/execute", { body: {}, headers });
  await expect(call, library.UnsupportedMediaTypeError, "UNSUPPORTED_MEDIA_TYPE", 415);
});

test("a method that the address is not for", async () => {
  await expect(client().request("PUT", "/mcp/tools"), library.MethodNotAllowedError, "METHOD_NOT_ALLOWED", 405);
});

test("a tool that takes too long, as an answer and as an event", async () => {
  const params = { from: 100 };
  const whole = client().executeTool("count_down", params, { timeout: 100 });
  await expect(whole, library.ExecutionTimeoutError, "TIMEOUT_ERROR", 504);
  const streamed = client().executeTool("count_down", params, { timeout: 100, onProgress: () => undefined });
  const error = await expect(streamed, library.ExecutionTimeoutError, "TIMEOUT_ERROR", undefined);
  assert.match(error.executionId ?? "", /^exec-/);
});

test("an execution that somebody else cancels, as an answer and as an event", async () => {
  const userId = fresh();
  const streamed = client().executeTool("count_down", { from: 100 }, { onStart: async (id) => void (await client().executions.cancel(id)) });
  await expect(streamed, library.ExecutionCancelledError, "CANCELLED", undefined);
  const whole = expect(client().executeTool("count_down", { from: 100 }, { userId }), library.ExecutionCancelledError, "CANCELLED", 499);
  for (;;) {
    const running = (await client().executions.list({ state: "running" })).find((one) => one.userId === userId);
    if (running) {
      await client().executions.cancel(running.executionId);
      break;
    }
  }
  await whole;
});

test("a tool that fails, as an answer and as an event", async () => {
  const call = (options = {}) => client().executeTool("fail", { message: "no paper" }, options);
  const error = await expect(call(), library.ExecutionError, "EXECUTION_ERROR", 500);
  assert.deepEqual([error.message, error.details], ["no paper", { content: [{ type: "text", text: "no paper" }] }]);
  await expect(call({ onChunk: () => undefined }), library.ExecutionError, "EXECUTION_ERROR", undefined);
});

test("a tool that asks its caller something", async () => {
  await expect(client().executeTool("ask_name"), library.ExecutionError, "EXECUTION_ERROR", 501);
});

test("a server that breaks down in the middle of a call, which is not made again", async () => {
  const call = client().executeTool("mcp__fragile__crash");
  await expect(call, library.ExecutionError, "EXECUTION_ERROR", 502);
});

test("a server that has gone away", async () => {
  const call = client({ retry: { retries: 0 } }).executeTool("mcp__gone__add", { a: 1, b: 2 });
  await expect(call, library.ExecutionError, "EXECUTION_ERROR", 502);
});

test("a bug of the server, as it is documented", async () => {
  const { client: behind } = failing("internal-500-1");
  const error = await expect(behind.discoverTools(), library.InternalError, "INTERNAL_ERROR", 500);
  assert.deepEqual(error.details, { id: "exec-bug" });
});

test("a yard that cannot be reached", async () => {
  const nowhere = client({ baseURL: "http://127.0.0.1:1", retry: { retries: 0 } });
  await expect(nowhere.executeTool("add"), library.NetworkError, "NETWORK_ERROR", undefined);
});
