import { describe, expect, it } from "vitest";
import { closest, fresh, initial } from "../src/schema/initial";
import { limits, parameters } from "../src/schema/parameters";
import { resolve, typeName } from "../src/schema/resolve";
import { validate } from "../src/schema/validate";

const tree = {
  $defs: { node: { type: "object", properties: { name: { type: "string" }, child: { $ref: "#/$defs/node" } }, required: ["name"] } },
  type: "object",
  properties: { trunk: { $ref: "#/$defs/node" }, "a/b": { $ref: "#/properties/trunk" } },
  required: ["trunk"],
};

describe("parameters", () => {
  it("are listed in the order of the terminal UI: required ones first, then by name", () => {
    const schema = {
      type: "object",
      properties: {
        zeta: { type: "string", description: "last" },
        tabId: { type: "number" },
        action: { type: "string", enum: ["a", "b"] },
        beta: { type: "integer", default: 20, minimum: 1, maximum: 50 },
        deep: { type: "array", items: { type: "object", properties: { x: {} } } },
      },
      required: ["tabId", "action"],
    };
    expect(parameters(schema)).toEqual([
      { name: "action", type: "string", required: true, enum: ["a", "b"], limits: [] },
      { name: "tabId", type: "number", required: true, limits: [] },
      { name: "beta", type: "integer", required: false, default: 20, limits: ["1 to 50"] },
      { name: "deep", type: "array of object", required: false, limits: [], inner: { type: "object", properties: { x: {} } } },
      { name: "zeta", type: "string", required: false, description: "last", limits: [] },
    ]);
  });

  it.each([[undefined], [null], [true], ["text"], [{}], [{ properties: 7 }], [{ properties: { a: null }, required: "a" }], [{ $ref: "#" }], [{ $ref: "https://example.com/x" }]])(
    "of %j are none, or of any type",
    (schema) => {
      expect(parameters(schema).every((one) => one.type === "any" && !one.required)).toBe(true);
    },
  );

  it("of a recursive schema terminate", () => {
    expect(parameters(tree).map((one) => [one.name, one.type, one.required])).toEqual([["trunk", "object", true], ["a/b", "object", false]]);
    const loop = { $defs: { a: { $ref: "#/$defs/b" }, b: { $ref: "#/$defs/a" } }, properties: { x: { $ref: "#/$defs/a" } } };
    expect(parameters(loop)).toEqual([{ name: "x", type: "any", required: false, limits: [] }]);
  });

  it("describe their constraints", () => {
    expect(limits({ exclusiveMinimum: 0, multipleOf: 2, minLength: 3, maxLength: 3, maxItems: 4, uniqueItems: true, pattern: "^a", format: "uri", const: 1 })).toEqual([
      "more than 0", "a multiple of 2", "exactly 3 characters", "at most 4 items", "unique items", "pattern ^a", "format uri", "always 1",
    ]);
  });
});

describe("schemas", () => {
  it("are merged from references and allOf", () => {
    const root = { $defs: { a: { type: "object", properties: { x: {} }, required: ["x"] } } };
    const both = { allOf: [{ $ref: "#/$defs/a" }, { properties: { y: {} } }], title: "T" };
    expect(resolve(both, root)).toEqual({ type: "object", properties: { x: {}, y: {} }, required: ["x"], title: "T" });
  });

  it.each([
    [{ type: ["string", "null"] }, "string | null"],
    [{ anyOf: [{ type: "string" }, { type: "array", items: { type: "integer" } }] }, "string | array of integer"],
    [{ enum: [1, "a"] }, "enum"],
    [{ const: 3 }, "number"],
    [{}, "any"],
  ])("%j is called %s", (schema, name) => {
    expect(typeName(schema, schema)).toBe(name);
  });

  it("start with their defaults and required objects", () => {
    const schema = {
      type: "object",
      properties: { a: { type: "string" }, b: { type: "integer", default: 3 }, c: { type: "object", properties: { d: { const: 1 } }, required: ["d"] }, e: { type: "object" } },
      required: ["a", "c"],
    };
    expect(initial(schema)).toEqual({ b: 3, c: { d: 1 } });
    expect(initial(tree)).toEqual({ trunk: {} });
    expect(initial(undefined)).toBe(undefined);
  });

  it("that require themselves terminate", () => {
    const endless = { type: "object", properties: { again: { $ref: "#" } }, required: ["again"] };
    expect(JSON.stringify(initial(endless)).length).toBeLessThan(200);
  });

  it("give an initial value", () => {
    const first = (schema: unknown) => fresh(schema, schema);
    expect([{ type: "string" }, { type: "integer", minimum: 2 }, { enum: ["x"] }, { type: "array" }, { anyOf: [{ type: "boolean" }] }, {}].map(first)).toEqual(["", 2, "x", [], false, ""]);
  });

  it("that match a value are found among several", () => {
    const list = [{ type: "string" }, { type: "object", properties: { kind: { const: "a" } } }, { type: "object", properties: { kind: { const: "b" } } }];
    expect(["x", { kind: "b" }, { kind: "a" }, 7].map((value) => closest(list, value, list))).toEqual([0, 2, 1, 0]);
  });
});

describe("validation of arguments", () => {
  it("reports the field", () => {
    const schema = { type: "object", properties: { a: { type: "integer", minimum: 1 }, "b/c": { type: "array", items: { type: "string" } } }, required: ["a", "d"] };
    expect(validate(schema, { a: 0, "b/c": ["x", 1] })).toEqual([
      { pointer: "/d", message: "This field is required." },
      { pointer: "/a", message: "0 is less than 1." },
      { pointer: "/b~1c/1", message: 'Instance type "number" is invalid. Expected "string".' },
    ]);
    expect(validate(schema, { a: 1, d: null })).toEqual([]);
  });

  it("resolves references, including recursive ones", () => {
    expect(validate(tree, { trunk: { name: "a", child: { name: "b" } } })).toEqual([]);
    expect(validate(tree, { trunk: { name: "a", child: { child: {} } } }).map((fault) => fault.pointer)).toContain("/trunk/child/name");
  });

  it("accepts everything if the schema is not an object", () => {
    expect([undefined, true, "x"].map((schema) => validate(schema, {}))).toEqual([[], [], []]);
  });
});
