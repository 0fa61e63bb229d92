// The address of the page: `#/tools/NAME?q=…` says what is shown, and `token=…` in the fragment is taken out of it at once.

import { reactive } from "vue";

export interface Place {
  path: string[];
  query: Record<string, string>;
}

/** What a fragment says: where to go, and the token if it brings one. */
export function read(fragment: string): { place: Place; token: string | null } {
  const text = fragment.replace(/^#/, "");
  const bare = text.startsWith("/") ? text : `?${text}`;
  const at = bare.indexOf("?");
  const params = new URLSearchParams(at < 0 ? "" : bare.slice(at + 1));
  const token = params.get("token");
  params.delete("token");
  const go = params.get("go");
  if (go?.startsWith("/")) return { place: read(go).place, token };
  const path = (at < 0 ? bare : bare.slice(0, at)).split("/").filter(Boolean).map(decode);
  return { place: { path, query: Object.fromEntries(params) }, token };
}

/** The fragment for a place. */
export function write(path: string[], query: Record<string, string | undefined> = {}): string {
  const params = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) if (value) params.set(key, value);
  const text = params.toString();
  return `#/${path.map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
}

/** The whole address of a place, to be opened elsewhere. The token is no part of it. */
export function address(path: string[], query: Record<string, string | undefined> = {}): string {
  return location.href.split("#")[0] + write(path, query);
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

const TOKEN = "toolyard.token";
export const place: Place = reactive({ path: [], query: {} });

export function token(): string | null {
  return sessionStorage.getItem(TOKEN);
}

export function keepToken(text: string): void {
  sessionStorage.setItem(TOKEN, text);
}

/** What the address says that is to be filled in, by name. */
export function filledIn(): Record<string, string> {
  try {
    const given: unknown = JSON.parse(place.query.args ?? "{}");
    if (typeof given !== "object" || given === null) return {};
    return Object.fromEntries(Object.entries(given).filter((entry): entry is [string, string] => typeof entry[1] === "string"));
  } catch {
    return {};
  }
}

export function go(path: string[], query: Record<string, string | undefined> = {}): void {
  location.hash = write(path, query);
}

/** Changes what the address says about the same place, without a step in the history. */
export function refine(query: Record<string, string | undefined>): void {
  history.replaceState(null, "", write(place.path, query));
  place.query = Object.fromEntries(Object.entries(query).filter((entry): entry is [string, string] => !!entry[1]));
}

/** Follows the address bar. `brought` hears of a token that came with the address. */
export function follow(brought: () => void): void {
  const look = () => {
    const found = read(location.hash);
    if (found.token) {
      keepToken(found.token);
      history.replaceState(null, "", write(found.place.path, found.place.query));
    }
    place.path = found.place.path;
    place.query = found.place.query;
    if (found.token) brought();
  };
  addEventListener("hashchange", look);
  look();
}
