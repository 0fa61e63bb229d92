// The recent arguments of each tool in this tab. Long arguments are not stored.

const KEY = "toolyard.recent";
const PER_TOOL = 8;
const TOOLS = 60;
const LONGEST = 8_000;

type Kept = Record<string, string[]>;

function load(): Kept {
  try {
    const kept: unknown = JSON.parse(sessionStorage.getItem(KEY) ?? "{}");
    return typeof kept === "object" && kept !== null ? (kept as Kept) : {};
  } catch {
    return {};
  }
}

export function recent(tool: string): string[] {
  const kept = load()[tool];
  return Array.isArray(kept) ? kept.filter((text) => typeof text === "string") : [];
}

export function remember(tool: string, args: unknown): void {
  const text = JSON.stringify(args);
  if (text === "{}" || text.length > LONGEST) return;
  const kept = load();
  const mine = [text, ...recent(tool).filter((other) => other !== text)].slice(0, PER_TOOL);
  delete kept[tool];
  const entries = [[tool, mine], ...Object.entries(kept)].slice(0, TOOLS);
  try {
    sessionStorage.setItem(KEY, JSON.stringify(Object.fromEntries(entries)));
  } catch {
    // The storage is full; recent arguments are optional.
  }
}
