import { describe, expect, it } from "vitest";
import { contents, fileName, json, piece, table } from "../src/show/content";
import { testFile } from "../src/show/savedTest";
import { python, quoted, snippet } from "../src/show/snippets";
import { expand, variables } from "../src/show/template";
import { bytes, duration, problem, size, span } from "../src/show/words";

describe("words", () => {
  it("show the hint of an error on its own line", () => {
    expect([problem("lost"), problem({ message: "lost" }), problem({ message: "lost", suggestion: "retry" }), problem(null)]).toEqual(["lost", "lost", "lost\nhint: retry", "null"]);
  });
  it("format times and sizes", () => {
    expect([0.2, 12.4, 1_234, 12_345, 75_000].map(duration)).toEqual(["< 1 ms", "12 ms", "1.23 s", "12.3 s", "1 min 15 s"]);
    expect([0, 59_000, 3_600_000, 90_061_000].map(span)).toEqual(["0 s", "59 s", "1 h", "1 d 1 h"]);
    expect([12, 1_234, 45_678, 5_000_000].map(size)).toEqual(["12 B", "1.2 kB", "46 kB", "5.0 MB"]);
    expect(["", "a", "ü", "€", "😀"].map(bytes)).toEqual(["", "a", "ü", "€", "😀"].map((text) => new TextEncoder().encode(text).length));
  });
});

describe("a call as code", () => {
  const args = { text: "it's", deep: { yes: true, none: null, list: [1] } };
  it("is quoted for a shell", () => {
    expect(snippet("curl", "http://h:1", "a b", args)).toBe(
      `curl -X POST http://h:1/mcp/tools/a%20b/execute \\\n  -H "Authorization: Bearer $TOOLYARD_TOKEN" -H "Content-Type: application/json" \\\n  -d '{"params":{"text":"it'\\''s","deep":{"yes":true,"none":null,"list":[1]}}}'`,
    );
    expect(["a", "$(x)", "a'b", ""].map(quoted)).toEqual(["a", "'$(x)'", "'a'\\''b'", "''"]);
  });
  it("is Python", () => {
    expect(python(args)).toBe(`{\n    "text": "it's",\n    "deep": {\n        "yes": True,\n        "none": None,\n        "list": [\n            1,\n        ],\n    },\n}`);
  });
  it("never contains the token", () => {
    for (const language of ["curl", "CLI", "TypeScript", "Python"] as const) expect(snippet(language, "http://h", "t", {})).toContain("TOOLYARD_TOKEN");
  });
});

describe("a call as a test file", () => {
  const made = (result: unknown, args: unknown = {}) => JSON.parse(testFile("files", "read", args, result)) as { server: string; tests: object[] };
  it("expects the part of the result that says most", () => {
    const text = { content: [{ type: "text", text: "a" }, { type: "text", text: "${b}" }], isError: false, resultType: "complete" };
    expect(made(text, { path: "${x}" })).toEqual({
      server: "files",
      tests: [{ name: "read", call: "read", arguments: { path: "$${x}" }, expect: { text: { equals: "a\n$${b}" } } }],
    });
    const structured = { content: [], structuredContent: { n: 1 }, isError: true, _meta: { "io.modelcontextprotocol/serverInfo": {} } };
    expect(made(structured).tests).toEqual([{ name: "read", call: "read", expect: { isError: true, structured: { equals: { n: 1 } } } }]);
    const image = { content: [{ type: "image", data: "", mimeType: "image/png" }] };
    expect(made(image).tests).toEqual([{ name: "read", call: "read", expect: { result: { equals: image } } }]);
  });
});

describe("content", () => {
  it("keeps its declared type only if it is valid", () => {
    expect(piece({ type: "image", data: "AA==", mimeType: "image/png" })).toEqual({ kind: "image", data: "AA==", mime: "image/png" });
    expect(piece({ type: "image", data: "AA==", mimeType: "text/html" }).kind).toBe("other");
    expect(piece({ type: "text", text: 7 }).kind).toBe("other");
    expect(piece(null)).toEqual({ kind: "other", value: null });
    expect(piece({ type: "resource", resource: { uri: "a:b", text: "t", mimeType: "m/n" } })).toEqual({ kind: "resource", uri: "a:b", mime: "m/n", text: "t" });
    expect(contents({ text: "no address" }).kind).toBe("other");
  });
  it("is a table if it is a list of objects", () => {
    expect(table([{ a: 1 }, { b: 2 }])).toEqual({ columns: ["a", "b"], rows: [{ a: 1 }, { b: 2 }] });
    expect(table({ count: 1, list: [{ a: 1 }] })?.columns).toEqual(["a"]);
    expect([table([]), table([1]), table({ a: [{ x: 1 }], b: [{ y: 1 }] }), table("x")]).toEqual([undefined, undefined, undefined, undefined]);
  });
  it("is parsed as JSON if it is an object or an array", () => {
    expect([json('{"a":1}'), json("[1"), json("12"), json("text")]).toEqual([{ a: 1 }, undefined, undefined, undefined]);
  });
  it("is downloaded under a safe name", () => {
    expect(["file:///a/b.txt?x", "x:../../etc/pass wd", "///"].map((uri) => fileName(uri))).toEqual(["b.txt", "pass_wd", "download"]);
  });
});

describe("templates", () => {
  it("have variables", () => {
    expect(variables("a://{b}/{+c}{?d,e*}{b}")).toEqual(["b", "c", "d", "e"]);
    expect(expand("a://{b}/{+c}{?d,e}", { b: "x y/", c: "p/q", d: "1" })).toBe("a://x%20y%2F/p/q?d=1");
    expect(expand("a://{b}", {})).toBe("a://");
  });
});
