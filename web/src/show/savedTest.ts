// A call of this page as a test file. `toolyard test` reads JSON as well as YAML; the other front ends use suite/saved_test.rs.

import { copy, digits, isObject, pretty } from "../control/json";

/** The fields of a result that are about the answer, not part of it. */
const ENVELOPE = ["resultType", "ttlMs", "cacheScope"];
const PROTOCOL = "io.modelcontextprotocol/";

/** Returns a test that repeats the call and expects its result. `tool` is the name that the server uses. */
export function testFile(server: string, tool: string, args: unknown, result: unknown): string {
  const given = isObject(args) && Object.keys(args).length ? { arguments: escaped(args) } : {};
  const test = { name: tool, call: escaped(tool), ...given, expect: escaped(expected(result)) };
  return `${pretty({ server: escaped(server), tests: [test] })}\n`;
}

/** Returns the part of a result that says most. */
function expected(result: unknown): object {
  const whole = copy(result);
  if (!isObject(whole)) return { result: { equals: whole } };
  for (const key of ENVELOPE) delete whole[key];
  if (isObject(whole._meta)) {
    for (const key of Object.keys(whole._meta)) if (key.startsWith(PROTOCOL)) delete whole._meta[key];
    if (!Object.keys(whole._meta).length) delete whole._meta;
  }
  if (whole.isError === false) delete whole.isError;
  const failure = whole.isError === true ? { isError: true } : {};
  const blocks = Array.isArray(whole.content) ? whole.content : [];
  const texts = blocks.map((block: unknown) => (isObject(block) && block.type === "text" && typeof block.text === "string" ? block.text : undefined));
  if (whole.structuredContent !== undefined) return { ...failure, structured: { equals: whole.structuredContent } };
  if (texts.length && !texts.includes(undefined)) return { ...failure, text: { equals: texts.join("\n") } };
  return { ...failure, result: { equals: whole } };
}

/** Protects texts from being read as variables. */
function escaped(value: unknown): unknown {
  if (typeof value === "string") return value.replaceAll("${", () => "$${");
  if (Array.isArray(value)) return value.map(escaped);
  if (!isObject(value) || digits(value) !== undefined) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [String(escaped(key)), escaped(one)]));
}
