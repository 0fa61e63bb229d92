// One request and its answer, without retries: how both look on the wire, and what an answer that is none becomes.

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

/** The longest part of an unexpected answer that is told. */
const TOLD = 200;

/** Sends, and gives back an answer that went well; any other is thrown. */
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

/** The JSON of an answer. */
export async function readJSON(sending: Sending, answer: Response): Promise<unknown> {
  const text = await orBroken(sending, () => answer.text());
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new UnexpectedAnswerError(`${place(sending)} was answered with something that is no JSON: ${short(text)}`, {
      status: answer.status,
      cause,
    });
  }
}

/** The error that an envelope tells of, if that is what it does. */
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
    // Not in the words of the protocol, so it is told as it is.
  }
  return (
    errorIn(envelope, facts) ??
    new UnexpectedAnswerError(`${place(sending)} was answered with status ${answer.status}: ${short(text)}`, facts)
  );
}

/** Whatever breaks on the way is a NetworkError, unless the caller asked for it. */
export async function orBroken<T>(sending: Sending, step: () => Promise<T>): Promise<T> {
  try {
    return await step();
  } catch (cause) {
    if (sending.signal?.aborted) throw sending.signal.reason;
    throw new NetworkError(`${place(sending)} got no answer: ${reason(cause)}`, { cause });
  }
}

/** The words of the innermost error: fetch itself only says that it failed. */
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
  return clean.length > TOLD ? `${clean.slice(0, TOLD)}…` : clean;
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
