// Incremental search for tools. The searchable text is converted to lowercase in advance.

import type { Tool } from "../control/messages";

export interface Row {
  tool: Tool;
  /** The displayed name: the title, or the raw name. */
  label: string;
  name: string;
  text: string;
}

export interface Filter {
  query: string;
  server?: string | undefined;
  tag?: string | undefined;
  permission?: string | undefined;
}

const SEARCHED = 600;

export function displayName(tool: Tool): string {
  const titled = (value: unknown) => (typeof value === "string" && value.trim() ? value : undefined);
  return titled(tool.title) ?? titled(tool.annotations?.title) ?? tool.name;
}

export function prepare(tools: Tool[]): Row[] {
  const rows = tools.map((tool) => {
    const label = displayName(tool);
    const text = `${tool.fullName} ${label} ${tool.tags.join(" ")} ${tool.description.slice(0, SEARCHED)}`;
    return { tool, label, name: tool.name.toLowerCase(), text: text.toLowerCase() };
  });
  const compare = new Intl.Collator("en", { numeric: true }).compare;
  return rows.sort((a, b) => compare(a.tool.serverName, b.tool.serverName) || compare(a.tool.name, b.tool.name));
}

/** Returns the rows that contain every word, ranked by name: exact match, prefix, substring, others. */
export function find(rows: Row[], filter: Filter): Row[] {
  const words = filter.query.toLowerCase().split(/\s+/).filter(Boolean);
  const narrowed = !!(filter.server || filter.tag || filter.permission);
  if (!words.length && !narrowed) return rows;
  const first = words[0] ?? "";
  const ranked: [Row[], Row[], Row[], Row[]] = [[], [], [], []];
  for (const row of rows) {
    if (narrowed && !passes(row.tool, filter)) continue;
    if (!words.every((word) => row.text.includes(word))) continue;
    const at = row.name.indexOf(first);
    const rank = row.name === first ? 0 : at === 0 ? 1 : at > 0 ? 2 : 3;
    ranked[words.length ? rank : 3].push(row);
  }
  return ranked.flat();
}

function passes(tool: Tool, filter: Filter): boolean {
  if (filter.server && tool.serverName !== filter.server) return false;
  if (filter.tag && !tool.tags.includes(filter.tag)) return false;
  return !filter.permission || tool.permissions.includes(filter.permission);
}

/** Returns every value of a filter with the number of matching tools. */
export function facet(rows: Row[], of: (tool: Tool) => string[]): [string, number][] {
  const counts = new Map<string, number>();
  for (const row of rows) for (const value of of(row.tool)) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts].sort((a, b) => a[0].localeCompare(b[0]));
}
