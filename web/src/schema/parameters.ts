// The parameters of a tool for display: required ones first, then by name.

import { amount, digits, isObject } from "../control/json";
import { choices, type Open, properties, required, resolve, typeName } from "./resolve";

export interface Parameter {
  name: string;
  type: string;
  required: boolean;
  description?: string;
  default?: unknown;
  enum?: unknown[];
  /** The constraints on a value, such as `1 to 10` or `at most 20 characters`. */
  limits: string[];
  /** The schema of the nested properties, if any. */
  inner?: unknown;
}

export function parameters(schema: unknown, root: unknown = schema): Parameter[] {
  const open = resolve(schema, root);
  const names = new Set(required(open));
  const list = Object.entries(properties(open)).map(([name, property]) => {
    const one = resolve(property, root);
    const parameter: Parameter = { name, type: typeName(property, root), required: names.has(name), limits: limits(one) };
    if (typeof one.description === "string" && one.description) parameter.description = one.description;
    if (one.default !== undefined) parameter.default = one.default;
    if (Array.isArray(one.enum)) parameter.enum = one.enum;
    const within = inner(one, root);
    if (within !== undefined) parameter.inner = within;
    return parameter;
  });
  return list.sort((a, b) => (a.required === b.required ? a.name.localeCompare(b.name) : a.required ? -1 : 1));
}

/** The first schema with properties: the object itself, the items of a list, or one of the choices. */
function inner(schema: Open, root: unknown): unknown {
  if (Object.keys(properties(schema)).length) return schema;
  const items = schema.items === undefined ? undefined : resolve(schema.items, root);
  if (items && Object.keys(properties(items)).length) return items;
  return choices(schema)
    ?.map((one) => resolve(one, root))
    .find((one) => Object.keys(properties(one)).length);
}

/** A number as the schema writes it. */
function figure(value: unknown): string | undefined {
  return amount(value) === undefined ? undefined : (digits(value) ?? String(value));
}

export function limits(schema: Open): string[] {
  const found: string[] = [];
  const span = (low: unknown, high: unknown, unit: string) => {
    const [from, to] = [figure(low), figure(high)];
    if (from !== undefined && to !== undefined) found.push(amount(low) === amount(high) ? `exactly ${from}${unit}` : `${from} to ${to}${unit}`);
    else if (from !== undefined) found.push(`at least ${from}${unit}`);
    else if (to !== undefined) found.push(`at most ${to}${unit}`);
  };
  span(schema.minimum, schema.maximum, "");
  const [above, below, step] = [schema.exclusiveMinimum, schema.exclusiveMaximum, schema.multipleOf].map(figure);
  if (above !== undefined) found.push(`more than ${above}`);
  if (below !== undefined) found.push(`less than ${below}`);
  if (step !== undefined) found.push(`a multiple of ${step}`);
  span(schema.minLength, schema.maxLength, " characters");
  span(schema.minItems, schema.maxItems, " items");
  if (schema.uniqueItems === true) found.push("unique items");
  if (typeof schema.pattern === "string") found.push(`pattern ${schema.pattern}`);
  if (typeof schema.format === "string") found.push(`format ${schema.format}`);
  if (schema.const !== undefined) found.push(`always ${JSON.stringify(schema.const)}`);
  return found;
}

/** Whether a schema puts no constraints on the contents of an object. */
export function isBlank(schema: unknown): boolean {
  return !isObject(schema) || !Object.keys(schema).some((key) => !["type", "$schema", "additionalProperties"].includes(key));
}
