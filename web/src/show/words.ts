// Formats times, durations, sizes and errors.

export function duration(ms: number | undefined): string {
  if (ms === undefined || !Number.isFinite(ms)) return "";
  if (ms < 1) return "< 1 ms";
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(ms < 10_000 ? 2 : 1)} s`;
  return span(ms);
}

/** Formats a duration in its two largest units. */
export function span(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  const units: [string, number][] = [
    ["d", 86_400],
    ["h", 3_600],
    ["min", 60],
    ["s", 1],
  ];
  const at = units.findIndex(([, size]) => seconds >= size);
  if (at < 0) return "0 s";
  let rest = seconds;
  const parts = units.slice(at, at + 2).map(([unit, size]) => {
    const count = Math.floor(rest / size);
    rest -= count * size;
    return count ? `${count} ${unit}` : "";
  });
  return parts.filter(Boolean).join(" ");
}

export function size(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`;
  if (bytes < 1_000_000) return `${(bytes / 1_000).toFixed(bytes < 10_000 ? 1 : 0)} kB`;
  return `${(bytes / 1_000_000).toFixed(bytes < 10_000_000 ? 1 : 0)} MB`;
}

export function clock(at: string): string {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return at;
  const two = (value: number) => String(value).padStart(2, "0");
  const text = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  return `${text}.${String(date.getMilliseconds()).padStart(3, "0")}`;
}

export function many(count: number, one: string): string {
  return `${count.toLocaleString("en")} ${count === 1 ? one : `${one}s`}`;
}

/** Returns the length of a text in UTF-8. */
export function bytes(text: string): number {
  let count = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    count += code < 0x80 ? 1 : code < 0x800 ? 2 : code >= 0xd800 && code < 0xe000 ? 2 : 3;
  }
  return count;
}

/** Formats an error: its message, and its suggestion as a hint on a second line. */
export function problem(error: unknown): string {
  if (typeof error === "string") return error;
  const { message, suggestion } = (error ?? {}) as { message?: unknown; suggestion?: unknown };
  if (typeof message !== "string") return JSON.stringify(error);
  return typeof suggestion === "string" ? `${message}\nhint: ${suggestion}` : message;
}
