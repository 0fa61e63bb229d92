// JSON as it was written: numbers that a double would write in another way keep their digits, where the browser can do that.

interface ExactJson {
  parse(text: string, reviver: (key: string, value: unknown, context?: { source?: string }) => unknown): unknown;
  rawJSON?(text: string): object;
  isRawJSON?(value: unknown): boolean;
}
const exact = JSON as unknown as ExactJson;

/** What may be a number that a double writes in another way: it is long, has an exponent or zeros at its end, is minus zero or very small. */
const ODD = /\d{16}|(?:^|[\s:[,])-?(?:\d+(?:\.\d+)?[eE]|\d+\.\d*0(?!\d)|0\.000000)|(?:^|[\s:[,])-0(?!\d)/;

/** Parses a message. Only one with an odd number pays for looking at every value. */
export function parse(text: string): unknown {
  if (!exact.rawJSON || !ODD.test(text)) return JSON.parse(text);
  return exact.parse(text, (_key, value, context) => {
    if (typeof value !== "number" || !context?.source) return value;
    return String(value) !== context.source ? exact.rawJSON!(context.source) : value;
  });
}

/** The digits of a number that was kept as it was written. */
export function digits(value: unknown): string | undefined {
  return exact.isRawJSON?.(value) ? (value as { rawJSON: string }).rawJSON : undefined;
}

/** What a number amounts to, however it was written; `undefined` for anything else. */
export function amount(value: unknown): number | undefined {
  if (typeof value === "number") return value;
  const written = digits(value);
  return written === undefined ? undefined : Number(written);
}

/** A copy of a JSON value, in which numbers stay as they were written. */
export function copy(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(copy);
  return isObject(value) ? Object.fromEntries(Object.entries(value).map(([key, one]) => [key, copy(one)])) : value;
}

/** A number from what somebody typed, all its digits kept. */
export function number(text: string): unknown {
  const value = Number(text);
  if (!Number.isFinite(value) || text.trim() === "") return undefined;
  const canonical = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(text.trim());
  if (canonical && exact.rawJSON && /\d{16}/.test(text) && String(value) !== text.trim()) return exact.rawJSON(text.trim());
  return value;
}

/** An object that has keys, which a list or a number with all its digits is not. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) && digits(value) === undefined;
}

export function pretty(value: unknown): string {
  return JSON.stringify(value, null, 2) ?? "";
}
