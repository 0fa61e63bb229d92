// Parses the untrusted content of results.

import { isObject, parse } from "../control/json";

export type Piece =
  | { kind: "text"; text: string; mime?: string }
  | { kind: "image" | "audio"; data: string; mime: string }
  | { kind: "link"; uri: string; name: string; mime?: string }
  | { kind: "resource"; uri: string; mime?: string; text?: string; blob?: string }
  | { kind: "other"; value: unknown };

const IMAGE = /^image\/[a-z0-9.+-]+$/i;
const AUDIO = /^audio\/[a-z0-9.+-]+$/i;

export function pieces(content: unknown): Piece[] {
  return Array.isArray(content) ? content.map(piece) : [];
}

export function piece(block: unknown): Piece {
  if (!isObject(block)) return { kind: "other", value: block };
  const mime = typeof block.mimeType === "string" ? block.mimeType : undefined;
  switch (block.type) {
    case "text":
      if (typeof block.text === "string") return { kind: "text", text: block.text, ...(mime ? { mime } : {}) };
      break;
    case "image":
      if (typeof block.data === "string" && mime && IMAGE.test(mime)) return { kind: "image", data: block.data, mime };
      break;
    case "audio":
      if (typeof block.data === "string" && mime && AUDIO.test(mime)) return { kind: "audio", data: block.data, mime };
      break;
    case "resource_link":
      if (typeof block.uri === "string") {
        const name = typeof block.title === "string" ? block.title : typeof block.name === "string" ? block.name : block.uri;
        return { kind: "link", uri: block.uri, name, ...(mime ? { mime } : {}) };
      }
      break;
    case "resource":
      if (isObject(block.resource)) return contents(block.resource);
      break;
  }
  return { kind: "other", value: block };
}

/** Parses one part of the contents of a resource. */
export function contents(part: unknown): Piece {
  if (!isObject(part) || typeof part.uri !== "string") return { kind: "other", value: part };
  const mime = typeof part.mimeType === "string" ? part.mimeType : undefined;
  const piece: Piece = { kind: "resource", uri: part.uri };
  if (mime) piece.mime = mime;
  if (typeof part.text === "string") piece.text = part.text;
  if (typeof part.blob === "string") piece.blob = part.blob;
  return piece;
}

/** How content of this type is shown, if the browser can show it. */
export function shownAs(mime: string | undefined): "image" | "audio" | undefined {
  if (!mime) return undefined;
  return IMAGE.test(mime) ? "image" : AUDIO.test(mime) ? "audio" : undefined;
}

/** Parses text as JSON if it is an object or an array. */
export function json(text: string): unknown {
  if (text.length > 2_000_000 || !/^\s*[[{]/.test(text)) return undefined;
  try {
    return parse(text);
  } catch {
    return undefined;
  }
}

export interface Table {
  columns: string[];
  rows: Record<string, unknown>[];
}

const WIDEST = 24;

/** Converts a list of objects, or the only such list in an object, to a table. */
export function table(value: unknown): Table | undefined {
  if (isObject(value)) {
    const lists = Object.values(value).map(table).filter((one) => one !== undefined);
    return lists.length === 1 ? lists[0] : undefined;
  }
  if (!Array.isArray(value) || !value.length || !value.every(isObject)) return undefined;
  const columns = new Set<string>();
  for (const row of value.slice(0, 200)) for (const key of Object.keys(row)) if (columns.size < WIDEST) columns.add(key);
  return columns.size ? { columns: [...columns], rows: value } : undefined;
}

/** Returns a safe file name for a download. */
export function fileName(uri: string, fallback = "download"): string {
  const last = uri.split(/[?#]/)[0]!.split("/").filter(Boolean).at(-1) ?? fallback;
  return last.replace(/[^\w.-]+/g, "_").slice(-80) || fallback;
}

export function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  const binary = atob(base64);
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < binary.length; at++) bytes[at] = binary.charCodeAt(at);
  return bytes;
}
