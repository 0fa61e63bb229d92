// Validates arguments against a schema, with a message for each error. It does not generate code from the schema, because the
// content security policy of the page forbids that.

import { type OutputUnit, type Schema, type SchemaDraft, Validator } from "@cfworker/json-schema";

export interface Fault {
  /** A JSON Pointer to the invalid value. */
  pointer: string;
  message: string;
}

const DRAFTS: [RegExp, SchemaDraft][] = [
  [/draft-04/, "4"],
  [/draft-0[67]/, "7"],
  [/2019-09/, "2019-09"],
];
/** Keywords that only report an error in a nested value. */
const OUTER = ["properties", "items", "prefixItems", "$ref", "additionalProperties", "allOf", "patternProperties", "dependentSchemas"];
const MOST = 100;

export function validate(schema: unknown, value: unknown): Fault[] {
  if (typeof schema !== "object" || schema === null) return [];
  const named = (schema as { $schema?: unknown }).$schema;
  const draft = DRAFTS.find(([known]) => typeof named === "string" && known.test(named))?.[1] ?? "2020-12";
  const result = new Validator(schema as Schema, draft, false).validate(value);
  if (result.valid) return [];
  const inner = result.errors.filter((error) => !OUTER.includes(error.keyword));
  const faults = (inner.length ? inner : result.errors).map(fault);
  const seen = new Set<string>();
  const first = faults.filter(({ pointer, message }) => {
    const key = `${pointer} ${message}`;
    return !seen.has(key) && !!seen.add(key);
  });
  return first.slice(0, MOST);
}

function fault(error: OutputUnit): Fault {
  const pointer = error.instanceLocation.replace(/^#/, "");
  const missing = error.keyword === "required" && /property "(.*)"/s.exec(error.error);
  if (missing) return { pointer: `${pointer}/${escape(missing[1]!)}`, message: "This field is required." };
  return { pointer, message: error.error };
}

export function escape(name: string): string {
  return name.replaceAll("~", "~0").replaceAll("/", "~1");
}
