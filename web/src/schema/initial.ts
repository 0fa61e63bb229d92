// The initial values of a form: the defaults of the schema, and required objects.

import { amount, copy, isObject } from "../control/json";
import { choices, kinds, properties, required, resolve } from "./resolve";

const DEEPEST = 6;

/** Returns the initial value for a schema, or `undefined` if it has no default. */
export function initial(schema: unknown, root: unknown = schema, depth = 0): unknown {
  const open = resolve(schema, root);
  if (open.default !== undefined) return copy(open.default);
  if (open.const !== undefined) return open.const;
  if (depth > DEEPEST || !kinds(open).includes("object")) return undefined;
  const value: Record<string, unknown> = {};
  const needed = new Set(required(open));
  for (const [name, property] of Object.entries(properties(open))) {
    const one = resolve(property, root);
    const wanted = needed.has(name) || one.default !== undefined;
    const begun = wanted ? initial(property, root, depth + 1) : undefined;
    if (begun !== undefined) value[name] = begun;
  }
  return value;
}

/** Returns an initial value for a field that the user adds. */
export function fresh(schema: unknown, root: unknown): unknown {
  const begun = initial(schema, root);
  if (begun !== undefined) return begun;
  const open = resolve(schema, root);
  if (Array.isArray(open.enum)) return open.enum[0];
  const [kind] = kinds(open);
  if (kind === "object") return {};
  if (kind === "array") return [];
  if (kind === "boolean") return false;
  if (kind === "number" || kind === "integer") return amount(open.minimum) === undefined ? 0 : open.minimum;
  if (kind === "null") return null;
  const list = choices(open);
  if (!kind && list) return fresh(list[0], root);
  return "";
}

/** Whether two values are equal; numbers are compared by value. */
function same(one: unknown, other: unknown): boolean {
  return one === other || (amount(one) !== undefined && amount(one) === amount(other));
}

/** Returns the index of the schema that a value matches best. */
export function closest(list: unknown[], value: unknown, root: unknown): number {
  const score = list.map((one) => {
    const open = resolve(one, root);
    if (open.const !== undefined) return same(open.const, value) ? 9 : -1;
    const names = kinds(open);
    const kind = value === null ? "null" : Array.isArray(value) ? "array" : amount(value) !== undefined ? "number" : typeof value;
    const fits = names.includes(kind) || (kind === "number" && names.includes("integer"));
    if (!fits) return names.length ? -1 : 0;
    if (!isObject(value)) return 1;
    const known = properties(open);
    let points = 1;
    for (const [key, inner] of Object.entries(value)) {
      const property = resolve(known[key], root);
      if (property.const !== undefined) points += same(property.const, inner) ? 5 : -5;
      else points += key in known ? 1 : -1;
    }
    return points;
  });
  return Math.max(0, score.indexOf(Math.max(...score)));
}
