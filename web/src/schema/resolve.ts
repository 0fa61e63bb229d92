// Reads untrusted schemas: references are resolved within the document only, cycles end, and anything that is not a schema
// is treated as one that allows any value.

import { amount, isObject } from "../control/json";
import type { Schema } from "../control/messages";

export type Open = { [key: string]: unknown };

const LONGEST_WAY = 16;

/** Resolves references and merges `allOf` into one schema object. */
export function resolve(schema: unknown, root: unknown): Open {
  let current = schema;
  let gathered: Open = {};
  for (let step = 0; step < LONGEST_WAY; step++) {
    if (!isObject(current)) return gathered;
    const { $ref, ...rest } = current;
    gathered = { ...rest, ...gathered };
    if (typeof $ref !== "string") return merged(gathered, root);
    current = at(root, $ref);
  }
  return gathered;
}

/** Returns the target of a local reference. */
function at(root: unknown, reference: string): unknown {
  if (reference === "#") return root;
  if (!reference.startsWith("#/")) return undefined;
  let current: unknown = root;
  for (const part of reference.slice(2).split("/")) {
    if (typeof current !== "object" || current === null) return undefined;
    current = (current as Open)[unescape(part)];
  }
  return current;
}

function unescape(part: string): string {
  let text = part;
  try {
    text = decodeURIComponent(part);
  } catch {
    // A malformed escape is kept as is.
  }
  return text.replaceAll("~1", "/").replaceAll("~0", "~");
}

function merged(schema: Open, root: unknown): Open {
  if (!Array.isArray(schema.allOf)) return schema;
  const { allOf, ...own } = schema;
  let all: Open = {};
  for (const part of [...(allOf as unknown[]).slice(0, LONGEST_WAY), own]) {
    const one = isObject(part) && typeof part.$ref === "string" ? (at(root, part.$ref) ?? {}) : part;
    if (!isObject(one)) continue;
    all = {
      ...all,
      ...one,
      ...(isObject(all.properties) || isObject(one.properties)
        ? { properties: { ...properties(all), ...properties(one) } }
        : {}),
      ...(all.required || one.required ? { required: [...required(all), ...required(one)] } : {}),
    };
  }
  return all;
}

export function properties(schema: Open): Open {
  return isObject(schema.properties) ? schema.properties : {};
}

export function required(schema: Open): string[] {
  return Array.isArray(schema.required) ? schema.required.filter((name) => typeof name === "string") : [];
}

/** Returns the allowed types; an empty list allows any type. */
export function kinds(schema: Open): string[] {
  const { type } = schema;
  if (typeof type === "string") return [type];
  if (Array.isArray(type)) return type.filter((one) => typeof one === "string");
  if (isObject(schema.properties)) return ["object"];
  if (schema.items !== undefined) return ["array"];
  return [];
}

/** Returns the alternative schemas of `oneOf` or `anyOf`. */
export function choices(schema: Open): Schema[] | undefined {
  const list = schema.oneOf ?? schema.anyOf;
  return Array.isArray(list) && list.length ? (list as Schema[]) : undefined;
}

/** Describes the type of a value in a short phrase. */
export function typeName(schema: unknown, root: unknown, depth = 0): string {
  if (depth > 3) return "…";
  const open = resolve(schema, root);
  if (Array.isArray(open.enum) && !kinds(open).length) return "enum";
  if (open.const !== undefined) return amount(open.const) === undefined ? typeof open.const : "number";
  const names = kinds(open).map((kind) => {
    if (kind !== "array" || open.items === undefined) return kind;
    return `array of ${typeName(open.items, root, depth + 1)}`;
  });
  if (names.length) return names.join(" | ");
  const list = choices(open);
  if (!list) return "any";
  return [...new Set(list.slice(0, 4).map((one) => typeName(one, root, depth + 1)))].join(" | ");
}
