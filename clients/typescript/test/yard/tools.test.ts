import assert from "node:assert/strict";
import { test } from "node:test";

import type { LogLine, Progress } from "../../src/index.js";
import { client, fresh, settled, yard } from "./yard.js";

test("native tools and tools of upstream servers are listed", async () => {
  const names = (await client().discoverTools()).map(({ name }) => name);
  for (const name of ["add", "admin_report", "mcp__inner__add", "mcp__talker__log"]) assert.ok(names.includes(name), name);
  assert.deepEqual((await client().discoverTools({ pageSize: 3 })).map(({ name }) => name), names);
  const plain = (await client({ token: yard.tokens.plain }).discoverTools()).map(({ name }) => name);
  assert.ok(!plain.includes("admin_report") && plain.includes("add"));
});

test("tools can be filtered by server, category, tags and words", async () => {
  const find = async (filters: object) => (await client().discoverTools(filters)).map(({ name }) => name);
  assert.deepEqual(await find({ server: "talker" }), ["mcp__talker__log", "mcp__talker__count", "mcp__talker__crash"]);
  assert.deepEqual(await find({ server: "demo", category: "numbers" }), ["add", "convert_temperature"]);
  assert.deepEqual(await find({ server: "inner", tags: ["celsius", "kelvin"] }), ["mcp__inner__convert_temperature"]);
  assert.deepEqual(await find({ server: "demo", q: "TWO numbers" }), ["add"]);
  assert.deepEqual(await find({ q: "nothing like this & that" }), []);
});

test("getTool returns the details of a tool", async () => {
  const tool = await client().getTool("mcp__inner__add");
  const { name, title, server, rawName, displayName, permissions } = tool;
  assert.deepEqual(
    { name, title, server, rawName, displayName, permissions },
    { name: "mcp__inner__add", title: "Add", server: "inner", rawName: "add", displayName: "Add", permissions: [] },
  );
  assert.deepEqual(tool.inputSchema["required"], ["a", "b"]);
  assert.deepEqual((await client().getTool("admin_report")).permissions, ["admin"]);
});

test("native tools and tools of upstream servers can be executed", async () => {
  for (const name of ["add", "mcp__inner__add"]) {
    const response = await client().executeTool<{ sum: number }>(name, { a: 1, b: 2 });
    const { metadata, ...rest } = response;
    assert.deepEqual(rest, { success: true, result: { sum: 3 } });
    assert.match(metadata.executionId, /^exec-/);
    assert.ok(metadata.duration >= 0 && !Number.isNaN(Date.parse(metadata.timestamp)));
  }
});

test("all content blocks are returned on request", async () => {
  const response = await client().executeTool("draw_swatch", { color: "#ff0000" }, { content: "full" });
  assert.equal((response.content?.[0] as { type: string }).type, "image");
});

test("progress is received while the tool runs", async () => {
  for (const name of ["count_down", "mcp__inner__count_down"]) {
    const heard: Progress[] = [];
    const started: string[] = [];
    const response = await client().executeTool(
      name,
      { from: 4, delay_ms: 30 },
      { onProgress: (progress) => void heard.push(progress), onStart: (id) => void started.push(id) },
    );
    assert.equal(response.result, "Lift-off!");
    assert.deepEqual(heard.map(({ message }) => message), ["4…", "3…", "2…", "1…"]);
    assert.deepEqual(started, [response.metadata.executionId]);
  }
});

test("chunks are streamed, or part of the response if it was faster", async () => {
  for (const count of [3, 500]) {
    const text = Array.from({ length: count }, (_, at) => `w${at}`).join(" ");
    const heard: unknown[] = [];
    const response = await client().executeTool("stream_words", { text }, { onChunk: (chunk) => void heard.push(chunk) });
    assert.deepEqual([response.result, heard.join(" ")], [`${count} words`, text]);
  }
});

test("log lines are received", async () => {
  const heard: LogLine[] = [];
  const response = await client().executeTool("mcp__talker__log", { key: "ä" }, { onLog: (line) => void heard.push(line) });
  assert.equal(response.result, "logged");
  assert.deepEqual(heard, [{ level: "warning", logger: "talker", data: { key: "ä" } }]);
});

test("user and session are recorded, and the outcome can be requested", async () => {
  const userId = fresh();
  const response = await client().executeTool("add", { a: 1, b: 2 }, { userId, sessionId: "s", priority: "high" });
  const found = await client().executions.get(response.metadata.executionId);
  assert.deepEqual([found.state, found.userId, found.sessionId, found.response], ["succeeded", userId, "s", response]);
  assert.equal((await settled(userId)).length, 1);
  const state = (await client().executions.cancel(response.metadata.executionId)).state;
  assert.equal(state, "succeeded");
});

test("an abort cancels the execution on the server", async () => {
  for (const options of [{}, { onProgress: () => undefined }, { idempotencyKey: fresh() }]) {
    const userId = fresh();
    const stop = new AbortController();
    const call = client().executeTool("count_down", { from: 100 }, { ...options, userId, signal: stop.signal });
    setTimeout(() => stop.abort(new Error("enough")), 300);
    await assert.rejects(call, new Error("enough"));
    assert.deepEqual((await settled(userId)).map(({ state }) => state), ["cancelled"], JSON.stringify(options));
  }
});
