// Lossless JSON: numbers that a double would format differently keep their digits, if the browser supports it.

interface ExactJson {
  parse(text: string, reviver: (key: string, value: unknown, context?: { source?: string }) => unknown): unknown;
  rawJSON?(text: string): object;
  isRawJSON?(value: unknown): boolean;
}
const exact = JSON as unknown as ExactJson;

/** Matches numbers that a double may format differently: long ones, exponents, trailing zeros, minus zero, very small ones. */
const ODD = /\d{16}|(?:^|[\s:[,])-?(?:\d+(?:\.\d+)?[eE]|\d+\.\d*0(?!\d)|0\.000000)|(?:^|[\s:[,])-0(?!\d)/;

/** Parses a message. Only a message that contains such a number pays for a reviver. */
export function parse(text: string): unknown {
  if (!exact.rawJSON || !ODD.test(text)) return JSON.parse(text);
  return exact.parse(text, (_key, value, context) => {
    if (typeof value !== "number" || !context?.source) return value;
    return String(value) !== context.source ? exact.rawJSON!(context.source) : value;
  });
}

/** Returns the digits of a number that was kept as written. */
export function digits(value: unknown): string | undefined {
  return exact.isRawJSON?.(value) ? (value as { rawJSON: string }).rawJSON : undefined;
}

/** Returns the value of a number, however it is written; `undefined` for anything else. */
export function amount(value: unknown): number | undefined {
  if (typeof value === "number") return value;
  const written = digits(value);
  return written === undefined ? undefined : Number(written);
}

/** Copies a JSON value and keeps numbers as written. */
export function copy(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(copy);
  return isObject(value) ? Object.fromEntries(Object.entries(value).map(([key, one]) => [key, copy(one)])) : value;
}

/** Parses user input as a number and keeps all its digits. */
export function number(text: string): unknown {
  const value = Number(text);
  if (!Number.isFinite(value) || text.trim() === "") return undefined;
  const canonical = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(text.trim());
  if (canonical && exact.rawJSON && /\d{16}/.test(text) && String(value) !== text.trim()) return exact.rawJSON(text.trim());
  return value;
}

/** Whether a value is an object with keys, not an array or a number kept as written. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) && digits(value) === undefined;
}

export function pretty(value: unknown): string {
  return JSON.stringify(value, null, 2) ?? "";
}
