import assert from "node:assert/strict";
import { test } from "node:test";

import { MCPError, NetworkError, RateLimitError } from "../../src/index.js";
import { client, failing, fresh, settled, yard } from "./yard.js";

const status = (expected: number) => (error: unknown) => error instanceof MCPError && error.status === expected;

test("calls beyond the rate limit are retried after Retry-After until all succeed", async () => {
  const slow = client({ token: yard.tokens.slow, retry: { retries: 10, baseDelay: 100 } });
  const userId = fresh();
  const responses = await Promise.all([1, 2, 3].map((a) => slow.executeTool("add", { a, b: 0 }, { userId })));
  assert.deepEqual(responses.map(({ result }) => (result as { sum: number }).sum), [1, 2, 3]);
});

test("a request with a Retry-After beyond the maximum is not retried", async () => {
  const impatient = client({ token: yard.tokens.slow, retry: { retries: 5, maxDelay: 500 } });
  const outcomes = await Promise.allSettled([1, 2, 3, 4].map((a) => impatient.executeTool("add", { a, b: 0 })));
  assert.ok(outcomes.some((outcome) => outcome.status === "rejected" && outcome.reason instanceof RateLimitError));
});

test("reads are retried after 502 and 503, up to the limit", async () => {
  for (const cue of ["before-502-2", "before-503-3", "after-502-1", "cut-0-1"]) {
    const { client: behind, seen } = failing(cue);
    assert.equal((await behind.getTool("add")).name, "add");
    const times = Number(cue.split("-")[2]);
    const forwarded = cue.startsWith("before") ? 1 : 2;
    assert.deepEqual(await seen(), { requests: times + 1, forwarded }, cue);
  }
  const { client: behind, seen } = failing("before-503-4");
  await assert.rejects(behind.getTool("add"), status(503));
  assert.deepEqual(await seen(), { requests: 4, forwarded: 0 });
});

test("other failures are not retried", async () => {
  for (const code of [500, 504, 404]) {
    const { client: behind, seen } = failing(`before-${code}-1`);
    await assert.rejects(behind.getTool("add"), status(code));
    assert.deepEqual(await seen(), { requests: 1, forwarded: 0 });
  }
});

test("an execution with an unknown outcome is not retried", async () => {
  for (const cue of ["before-502-1", "before-503-1", "after-502-1", "cut-0-1"]) {
    const { client: behind, seen } = failing(cue);
    const [key, kind] = [fresh(), cue.startsWith("cut") ? (error: unknown) => error instanceof NetworkError : status(Number(cue.split("-")[1]))];
    await assert.rejects(behind.executeTool("mcp__talker__count", { key }), kind);
    const forwarded = cue.startsWith("before") ? 0 : 1;
    assert.deepEqual(await seen(), { requests: 1, forwarded }, cue);
    const { result } = await client().executeTool("mcp__talker__count", { key });
    assert.equal(result, forwarded + 1, cue);
  }
});

test("an execution rejected by the rate limit is retried", async () => {
  const { client: behind, seen } = failing("before-429-1");
  assert.equal((await behind.executeTool("mcp__talker__count", { key: fresh() })).result, 1);
  assert.deepEqual(await seen(), { requests: 2, forwarded: 1 });
});

test("with a key, an execution is retried and runs once", async () => {
  for (const cue of ["before-502-2", "after-502-1", "after-503-2", "cut-0-1"]) {
    const { client: behind, seen } = failing(cue);
    const [key, userId] = [fresh(), fresh()];
    const response = await behind.executeTool("mcp__talker__count", { key }, { idempotencyKey: key, userId });
    assert.equal(response.result, 1, cue);
    assert.equal((await settled(userId)).length, 1, cue);
    const times = Number(cue.split("-")[2]);
    assert.deepEqual(await seen(), { requests: times + 1, forwarded: cue.startsWith("before") ? 1 : times + 1 }, cue);
  }
});

test("an idempotent execution is retried", async () => {
  const { client: behind, seen } = failing("after-502-1");
  const response = await behind.executeTool("mcp__talker__count", { key: fresh() }, { idempotent: true });
  assert.equal(response.result, 2);
  assert.deepEqual(await seen(), { requests: 2, forwarded: 2 });
});

test("an upstream server that restarts is reached again", async () => {
  await assert.rejects(client().executeTool("mcp__fragile__crash"), status(502));
  const patient = client({ retry: { retries: 30, baseDelay: 400, maxDelay: 1_000 } });
  const response = await patient.executeTool("mcp__fragile__count", { key: fresh() }, { idempotent: true });
  assert.equal(response.result, 1);
});

test("the same key returns the same execution", async () => {
  const idempotencyKey = fresh();
  const call = () => client().executeTool("mcp__talker__count", { key: idempotencyKey }, { idempotencyKey });
  const [first, second] = await Promise.all([call(), call()]);
  assert.deepEqual(second, first);
  assert.deepEqual(await call(), first);
});
