import assert from "node:assert/strict";
import { test } from "node:test";

import { EventReader } from "../../src/events.js";

const TEXT =
  ':\n\nid: 1\nevent: progress\ndata: {"a":1}\n\nid: 2\ndata: first\ndata:second\ndata\n\n: note\nretry: 5\nevent: x\n\ndata: ä€😀\n\n';
const EVENTS = [
  { id: "1", event: "progress", data: '{"a":1}' },
  { id: "2", event: "message", data: "first\nsecond\n" },
  { id: "2", event: "message", data: "ä€😀" },
];

function read(pieces: string[]) {
  const reader = new EventReader();
  return pieces.flatMap((piece) => reader.push(piece));
}

test("events do not depend on chunk boundaries and line endings", () => {
  for (const end of ["\n", "\r\n", "\r"]) {
    const text = TEXT.replaceAll("\n", end);
    assert.deepEqual(read([text]), EVENTS);
    assert.deepEqual(read([...text]), EVENTS);
    assert.deepEqual(read([...text].flatMap((letter) => [letter, ""])), EVENTS);
    for (let at = 0; at <= text.length; at += 1) assert.deepEqual(read([text.slice(0, at), text.slice(at)]), EVENTS);
  }
});

test("an event without a final empty line is incomplete", () => {
  assert.deepEqual(read(["data: x\n"]), []);
});

test("a line in many chunks is joined", () => {
  const long = "x".repeat(1_000);
  const pieces = Array.from({ length: 2_000 }, () => long);
  assert.deepEqual(read(["data: ", ...pieces, "\n\n"]), [{ id: "", event: "message", data: long.repeat(2_000) }]);
});
