import assert from "node:assert/strict";
import { test } from "node:test";

import { errorFor, ExecutionError, MCPError, NetworkError, RateLimitError } from "../../src/errors.js";
import { readRetryAfter, Retry, sleep, type Repeat } from "../../src/retry.js";

const whole = () => 1;
const status = (code: number, more = {}) => new MCPError("X", "x", { status: code, ...more });

test("retries depend on whether a request can safely be repeated", () => {
  const retry = new Retry();
  const again = (error: unknown, repeat: Repeat) => retry.pause(error, 1, repeat, whole) !== undefined;
  const table = [400, 401, 403, 404, 409, 413, 429, 499, 500, 501, 502, 503, 504].map((code) => [
    code,
    again(status(code), "harmless"),
    again(status(code), "only-if-refused"),
  ]);
  assert.deepEqual(
    table.filter(([, harmless]) => harmless),
    [
      [429, true, true],
      [502, true, false],
      [503, true, false],
    ],
  );
  assert.deepEqual(
    table.filter(([, , refused]) => refused).map(([code]) => code),
    [429],
  );
  assert.equal(again(new NetworkError("x"), "harmless"), true);
  assert.equal(again(new NetworkError("x"), "only-if-refused"), false);
  assert.equal(again(new ExecutionError("EXECUTION_ERROR", "x"), "harmless"), false);
  assert.equal(again(status(502, { replayed: true }), "harmless"), false);
  assert.equal(again(new TypeError("x"), "harmless"), false);
});

test("delays double up to the maximum, with jitter", () => {
  const retry = new Retry({ retries: 5, baseDelay: 100, maxDelay: 500 });
  const pauses = [1, 2, 3, 4, 5, 6].map((tried) => retry.pause(status(503), tried, "harmless", whole));
  assert.deepEqual(pauses, [100, 200, 400, 500, 500, undefined]);
  assert.equal(retry.pause(status(503), 2, "harmless", () => 0.25), 50);
});

test("Retry-After is honored, unless it is too long", () => {
  const retry = new Retry({ baseDelay: 100, maxDelay: 2_000 });
  const pause = (retryAfter: number) => retry.pause(status(429, { retryAfter }), 1, "only-if-refused", whole);
  assert.deepEqual([pause(0), pause(1), pause(2), pause(3)], [100, 1_100, 2_000, undefined]);
});

test("Retry-After is a number of seconds or a date", () => {
  const now = Date.parse("2026-01-01T00:00:00Z");
  const read = (text: string | null) => readRetryAfter(text, now);
  assert.deepEqual(
    [null, "7", " 7 ", "-1", "1e9", "soon", "2026-01-01", "Thu, 01 Jan 2026 00:00:09 GMT", "Wed, 31 Dec 2025 00:00:00 GMT"].map(read),
    [undefined, 7, 7, undefined, undefined, undefined, undefined, 9, 0],
  );
});

test("invalid settings are rejected", () => {
  assert.throws(() => new Retry({ retries: -1 }), TypeError);
  assert.throws(() => new Retry({ maxDelay: Number.NaN }), TypeError);
});

test("a delay ends when its signal is aborted", async () => {
  const stop = new AbortController();
  const pause = sleep(60_000, stop.signal);
  stop.abort(new Error("enough"));
  await assert.rejects(pause, /enough/);
  await assert.rejects(sleep(60_000, stop.signal), /enough/);
});

test("an unknown code is still an MCPError", () => {
  const error = errorFor("toString", "new", { status: 418 });
  assert.deepEqual([error.constructor, error.name, error.code, error.status], [MCPError, "MCPError", "toString", 418]);
  const known = errorFor("RATE_LIMIT_ERROR", "slow", { retryAfter: 2 });
  assert.deepEqual([known.constructor, known.name, known.retryAfter], [RateLimitError, "RateLimitError", 2]);
});
