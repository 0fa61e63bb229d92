// The address of the page: `#/tools/NAME?q=…` selects the view, and `token=…` is removed from the fragment immediately.

import { reactive } from "vue";

export interface Place {
  path: string[];
  query: Record<string, string>;
}

/** Parses a fragment into a place and, if present, a token. */
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

/** Formats a place as a fragment. */
export function write(path: string[], query: Record<string, string | undefined> = {}): string {
  const params = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) if (value) params.set(key, value);
  const text = params.toString();
  return `#/${path.map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
}

/** Returns the full URL of a place, for use in other browsers. It does not contain the token. */
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

/** Returns the form values in the address, by name. */
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

/** Replaces the query of the current place without adding a history entry. */
export function refine(query: Record<string, string | undefined>): void {
  history.replaceState(null, "", write(place.path, query));
  place.query = Object.fromEntries(Object.entries(query).filter((entry): entry is [string, string] => !!entry[1]));
}

/** Follows the address bar. Calls `brought` when the address contains a token. */
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
