// Sends one request and parses its response, without retries.

import { errorFor, MCPError, NetworkError, UnexpectedAnswerError, type ErrorFacts } from "./errors.js";
import { readRetryAfter } from "./retry.js";

export type Fetch = (input: string, init: RequestInit) => Promise<Response>;

export type Query = Record<string, string | number | string[] | undefined>;

export interface Target {
  baseURL: string;
  token: string | undefined;
  fetch: Fetch;
}

export interface Sending {
  method: string;
  path: string;
  query?: Query | undefined;
  headers?: Record<string, string> | undefined;
  /** Sent as JSON. */
  body?: unknown;
  signal: AbortSignal | undefined;
}

/** The maximum length of an excerpt from an unexpected response. */
const MAX_EXCERPT = 200;

/** Sends a request and returns the response. Throws an error for a status other than 2xx. */
export async function exchange(target: Target, sending: Sending): Promise<Response> {
  const headers: Record<string, string> = { accept: "application/json", "x-mcp-version": "1.0" };
  if (target.token !== undefined) headers["authorization"] = `Bearer ${target.token}`;
  const init: RequestInit = { method: sending.method, headers, redirect: "error" };
  if (sending.body !== undefined) {
    headers["content-type"] = "application/json";
    init.body = JSON.stringify(sending.body);
  }
  for (const [name, value] of Object.entries(sending.headers ?? {})) headers[name.toLowerCase()] = value;
  if (sending.signal) init.signal = sending.signal;
  const address = target.baseURL + sending.path + writeQuery(sending.query ?? {});
  const answer = await orBroken(sending, () => target.fetch(address, init));
  if (answer.ok) return answer;
  throw await failure(sending, answer);
}

/** Parses the body of a response as JSON. */
export async function readJSON(sending: Sending, answer: Response): Promise<unknown> {
  const text = await orBroken(sending, () => answer.text());
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new UnexpectedAnswerError(`${place(sending)} returned a response that is not valid JSON: ${short(text)}`, {
      status: answer.status,
      cause,
    });
  }
}

/** Returns the error in an envelope, if it contains one. */
export function errorIn(envelope: unknown, facts: ErrorFacts): MCPError | undefined {
  const { error, metadata } = (envelope ?? {}) as { error?: Record<string, unknown>; metadata?: Record<string, unknown> };
  if (typeof error?.["code"] !== "string" || typeof error["message"] !== "string") return undefined;
  const id = metadata?.["executionId"];
  const executionId = typeof id === "string" ? id : undefined;
  return errorFor(error["code"], error["message"], { ...facts, details: error["details"], executionId });
}

async function failure(sending: Sending, answer: Response): Promise<MCPError> {
  const text = await orBroken(sending, () => answer.text());
  const facts = {
    status: answer.status,
    retryAfter: readRetryAfter(answer.headers.get("retry-after")),
    replayed: answer.headers.get("idempotency-replayed") === "true",
  };
  let envelope: unknown;
  try {
    envelope = JSON.parse(text);
  } catch {
    // The body is not JSON; the error below contains an excerpt of it.
  }
  return (
    errorIn(envelope, facts) ??
    new UnexpectedAnswerError(`${place(sending)} returned status ${answer.status}: ${short(text)}`, facts)
  );
}

/** Converts errors of the connection to a NetworkError, unless the caller aborted the request. */
export async function orBroken<T>(sending: Sending, step: () => Promise<T>): Promise<T> {
  try {
    return await step();
  } catch (cause) {
    if (sending.signal?.aborted) throw sending.signal.reason;
    throw new NetworkError(`${place(sending)} got no response: ${reason(cause)}`, { cause });
  }
}

/** Returns the message of the innermost error. The message of `fetch` itself is generic. */
function reason(error: unknown): string {
  let inner = error;
  for (let depth = 0; depth < 5 && inner instanceof Error && inner.cause instanceof Error; depth += 1) inner = inner.cause;
  if (!(inner instanceof Error)) return String(inner);
  return inner.message || String((inner as { code?: unknown }).code ?? inner.name);
}

function place(sending: Sending): string {
  return `${sending.method} ${sending.path}`;
}

function short(text: string): string {
  const clean = text.replace(/\s+/g, " ").trim();
  return clean.length > MAX_EXCERPT ? `${clean.slice(0, MAX_EXCERPT)}…` : clean;
}

function writeQuery(query: Query): string {
  const pairs = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined) continue;
    for (const one of Array.isArray(value) ? value : [value]) pairs.append(name, String(one));
  }
  const text = pairs.toString();
  return text === "" ? "" : `?${text}`;
}
