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

test("an unknown tool", async () => {
  await expect(client().executeTool("no_such_tool"), library.ToolNotFoundError, "TOOL_NOT_FOUND", 404);
  await expect(client().getTool("../executions"), library.ToolNotFoundError, "TOOL_NOT_FOUND", 404);
});

test("an unknown version of a tool", async () => {
  const call = client().executeTool("add", { a: 1, b: 2 }, { version: "9.9.9" });
  await expect(call, library.ToolNotFoundError, "TOOL_NOT_FOUND", 404);
});

test("an unknown execution or path", async () => {
  await expect(client().executions.get("exec-0"), library.NotFoundError, "NOT_FOUND", 404);
  await expect(client().executions.cancel("exec-0"), library.NotFoundError, "NOT_FOUND", 404);
  await expect(client().request("GET", "/mcp/nothing"), library.NotFoundError, "NOT_FOUND", 404);
});

test("invalid parameters, each with its location", async () => {
  const call = client().executeTool("add", { a: "1" });
  const error = await expect(call, library.ValidationError, "VALIDATION_ERROR", 400);
  assert.ok(error instanceof library.ValidationError);
  assert.deepEqual(error.violations.map(({ pointer, provided }) => [pointer, provided]).sort(), [
    ["/a", "1"],
    ["/b", null],
  ]);
});

test("an unsupported protocol version", async () => {
  const call = client().request("GET", "/mcp/tools", { headers: { "X-MCP-Version": "9.9" } });
  const error = await expect(call, library.ValidationError, "VALIDATION_ERROR", 400);
  assert.deepEqual((error.details as { supported: unknown }).supported, ["1.0"]);
});

test("an idempotency key of another request", async () => {
  const idempotencyKey = fresh();
  await client().executeTool("add", { a: 1, b: 2 }, { idempotencyKey });
  const call = client().executeTool("add", { a: 1, b: 3 }, { idempotencyKey });
  await expect(call, library.ValidationError, "VALIDATION_ERROR", 409);
});

test("a wrong, expired or missing token", async () => {
  const reason = async (token: string | undefined) => {
    const options = token === undefined ? { baseURL: yard.url } : { baseURL: yard.url, token };
    const call = new library.MCPClient(options).discoverTools();
    const error = await expect(call, library.AuthenticationError, "AUTHENTICATION_ERROR", 401);
    return (error.details as { reason: string }).reason;
  };
  const reasons = [await reason("wrong"), await reason(yard.tokens.expired), await reason(undefined)];
  assert.deepEqual(reasons, ["token_unknown", "token_expired", "token_missing"]);
});

test("a missing permission", async () => {
  const plain = client({ token: yard.tokens.plain });
  await expect(plain.executeTool("admin_report"), library.PermissionDeniedError, "PERMISSION_ERROR", 403);
  await client().executeTool("admin_report");
});

test("calls beyond the rate limit", async () => {
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

test("an unsupported content type", async () => {
  const headers = { "Content-Type": "text/plain" };
  const call = client().request("POST", "/mcp/tools/add/execute", { body: {}, headers });
  await expect(call, library.UnsupportedMediaTypeError, "UNSUPPORTED_MEDIA_TYPE", 415);
});

test("an unsupported method", async () => {
  await expect(client().request("PUT", "/mcp/tools"), library.MethodNotAllowedError, "METHOD_NOT_ALLOWED", 405);
});

test("a timeout, as a response and as an event", async () => {
  const params = { from: 100 };
  const whole = client().executeTool("count_down", params, { timeout: 100 });
  await expect(whole, library.ExecutionTimeoutError, "TIMEOUT_ERROR", 504);
  const streamed = client().executeTool("count_down", params, { timeout: 100, onProgress: () => undefined });
  const error = await expect(streamed, library.ExecutionTimeoutError, "TIMEOUT_ERROR", undefined);
  assert.match(error.executionId ?? "", /^exec-/);
});

test("an execution canceled by another client, as a response and as an event", async () => {
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

test("a failing tool, as a response and as an event", async () => {
  const call = (options = {}) => client().executeTool("fail", { message: "no paper" }, options);
  const error = await expect(call(), library.ExecutionError, "EXECUTION_ERROR", 500);
  assert.deepEqual([error.message, error.details], ["no paper", { content: [{ type: "text", text: "no paper" }] }]);
  await expect(call({ onChunk: () => undefined }), library.ExecutionError, "EXECUTION_ERROR", undefined);
});

test("a tool that asks a question", async () => {
  await expect(client().executeTool("ask_name"), library.ExecutionError, "EXECUTION_ERROR", 501);
});

test("a server that crashes during a call, which is not retried", async () => {
  const call = client().executeTool("mcp__fragile__crash");
  await expect(call, library.ExecutionError, "EXECUTION_ERROR", 502);
});

test("an unreachable upstream server", async () => {
  const call = client({ retry: { retries: 0 } }).executeTool("mcp__gone__add", { a: 1, b: 2 });
  await expect(call, library.ExecutionError, "EXECUTION_ERROR", 502);
});

test("an internal error of the server", async () => {
  const { client: behind } = failing("internal-500-1");
  const error = await expect(behind.discoverTools(), library.InternalError, "INTERNAL_ERROR", 500);
  assert.deepEqual(error.details, { id: "exec-bug" });
});

test("an unreachable yard", async () => {
  const nowhere = client({ baseURL: "http://127.0.0.1:1", retry: { retries: 0 } });
  await expect(nowhere.executeTool("add"), library.NetworkError, "NETWORK_ERROR", undefined);
});
