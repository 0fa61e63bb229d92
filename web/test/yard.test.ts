import { describe, expect, it } from "vitest";
import { digits, number, parse, pretty } from "../src/control/json";
import type { Call, Tool, YardEvent } from "../src/control/messages";
import { closest, fresh, initial } from "../src/schema/initial";
import { parameters } from "../src/schema/parameters";
import { json } from "../src/show/content";
import { facet, find, prepare } from "../src/yard/search";
import { KEPT, Timeline } from "../src/yard/timeline";

const tool = (serverName: string, name: string, more: Partial<Tool> = {}): Tool => ({
  name, fullName: `mcp__${serverName}__${name}`, serverName, description: "", inputSchema: {}, tags: [], permissions: [], definition: {}, ...more,
});
const call = (id: string, status: Call["status"], startedAt = id): Call => ({ id, thing: "tool", subject: "t", principal: "p", startedAt, status });
const event = (name: string, fields: object, seq = 1): YardEvent => ({ type: "event", event: name, seq, at: "", ...fields });

describe("the search", () => {
  const rows = prepare([
    tool("files", "read_file", { description: "Reads a FILE." }),
    tool("files", "file"),
    tool("git", "show", { title: "Show a commit", description: "of a file", tags: ["vcs"], permissions: ["repo"] }),
    tool("git", "file_log"),
  ]);
  const names = (query: string, more = {}) => find(rows, { query, ...more }).map((row) => row.tool.name);

  it("ranks names before descriptions", () => {
    expect(names("file")).toEqual(["file", "file_log", "read_file", "show"]);
  });
  it("requires every word, in any case and order", () => {
    expect([names("COMMIT show"), names("git file"), names("nothing")]).toEqual([["show"], ["file_log", "show"], []]);
  });
  it("narrows by server, tag and permission", () => {
    expect([names("", { server: "git" }), names("", { tag: "vcs" }), names("file", { permission: "repo" })]).toEqual([["file_log", "show"], ["show"], ["show"]]);
    expect(facet(rows, (one) => [one.serverName])).toEqual([["files", 2], ["git", 2]]);
  });
  it("takes less than 50 ms for ten thousand tools", () => {
    const many = prepare(Array.from({ length: 10_000 }, (_, at) => tool(`s${at % 100}`, `tool_${at}`, { description: "some words about what it does ".repeat(10) })));
    const times = Array.from({ length: 9 }, () => {
      const began = performance.now();
      expect(find(many, { query: "tool_99 what" }).length).toBe(111);
      return performance.now() - began;
    });
    // The machine may be shared, so the fastest of several runs counts.
    expect(Math.min(...times)).toBeLessThan(50);
  });
});

describe("the timeline", () => {
  it("contains each call once, newest first", () => {
    const timeline = new Timeline();
    timeline.fill([call("2", "running"), call("1", "succeeded")]);
    timeline.apply([event("call_started", { call: call("3", "running") }), event("call_started", { call: call("2", "running") }), event("call_ended", { call: call("2", "failed") })]);
    expect(timeline.latest().map((entry) => [entry.call.id, entry.call.status])).toEqual([["3", "running"], ["2", "failed"], ["1", "succeeded"]]);
  });
  it("ignores outdated events", () => {
    const timeline = new Timeline();
    timeline.apply([event("call_ended", { call: call("1", "succeeded") })]);
    expect(timeline.apply([event("call_started", { call: call("1", "running") }), event("call_progress", { id: "1", progress: 1 })])).toBe(false);
    expect(timeline.latest()).toEqual([{ call: call("1", "succeeded") }]);
  });
  it("tracks the progress of a call", () => {
    const timeline = new Timeline();
    timeline.apply([event("call_started", { call: call("1", "running") }), event("call_progress", { id: "1", progress: 1, total: 4, message: "m" })]);
    expect(timeline.get("1")).toEqual({ call: call("1", "running"), progress: 1, total: 4, message: "m" });
  });
  it("drops the oldest calls", () => {
    const timeline = new Timeline();
    timeline.apply(Array.from({ length: KEPT + 10 }, (_, at) => event("call_started", { call: call(String(at), "running") })));
    expect([timeline.length, timeline.get("9"), timeline.latest().at(-1)?.call.id]).toEqual([KEPT, undefined, "10"]);
  });
});

describe("numbers", () => {
  const able = "rawJSON" in JSON;
  it("keep their digits if the engine supports it", () => {
    const value = parse('{"a": 12345678901234567890, "b": 1.5}') as { a: unknown; b: unknown };
    expect([digits(value.a), value.b]).toEqual([able ? "12345678901234567890" : undefined, 1.5]);
  });
  it("are shown as the server sent them", () => {
    expect(able).toBe(true);
    const sent = ["1e400", "1.0", "0.10", "-0", "-0.0", "1E5", "1e5", "100000000000000000000000", "0.00000001", "12345678901234567890", "1.50", "-2.00e-3"];
    for (const text of sent) {
      expect(digits(parse(text)), text).toBe(text);
      for (const whole of [`{"a":${text}}`, `[${text}]`, `[1,${text},2]`, `{"a": [ ${text} ]}`]) expect(JSON.stringify(parse(whole)), whole).toBe(whole.replaceAll(" ", ""));
    }
    // A number that a double formats identically stays a plain number.
    for (const text of ["0", "-1", "1.5", "0.1", "123456789012345", "33.333333333333336"]) expect(parse(text), text).toBe(Number(text));
    expect(parse('{"text": "1.0, 1e400 and [2.50]", "n": 3}')).toEqual({ text: "1.0, 1e400 and [2.50]", n: 3 });
  });
  it("in text content are shown as the server sent them", () => {
    expect(pretty(json('{"price": 0.10, "far": 1e400, "whole": [1.0]}'))).toBe('{\n  "price": 0.10,\n  "far": 1e400,\n  "whole": [\n    1.0\n  ]\n}');
  });
  it("in schemas are compared by value", () => {
    const schema = parse('{"type":"object","properties":{"n":{"type":"number","minimum":1.0,"maximum":5.50,"default":2.0},"s":{"const":1.0}},"required":["n","s"]}');
    const [n, s] = parameters(schema);
    expect([n!.limits, JSON.stringify(n!.default), s!.type, s!.limits]).toEqual([["1.0 to 5.50"], "2.0", "number", ["always 1.0"]]);
    expect(JSON.stringify(initial(schema))).toBe('{"n":2.0,"s":1.0}');
    expect(JSON.stringify(fresh(parse('{"type":"number","minimum":3.0}'), {}))).toBe("3.0");
    expect(closest([{ const: 2 }, { const: 1 }, { type: "string" }], parse("1.0"), {})).toBe(1);
    expect(closest([{ type: "string" }, { type: "number" }], parse("1e400"), {})).toBe(1);
  });
  it("are parsed from user input", () => {
    expect(["1", "-2.5", "1e3", "", " ", "x", "0x10", "Infinity"].map(number)).toEqual([1, -2.5, 1000, undefined, undefined, undefined, 16, undefined]);
  });
});
