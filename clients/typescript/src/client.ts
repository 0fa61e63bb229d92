// The client: sends requests and retries them.

import { ExecutionTimeoutError, NetworkError, UnexpectedAnswerError } from "./errors.js";
import { exchange, readJSON, type Fetch, type Query, type Sending, type Target } from "./exchange.js";
import type {
  ExecuteOptions,
  Execution,
  ExecutionDetails,
  ExecutionFilters,
  ExecutionResponse,
} from "./execution.js";
import { Retry, sleep, type Repeat, type RetryOptions } from "./retry.js";
import { isStream, readStream } from "./stream.js";
import type { Tool, ToolDetails, ToolFilters } from "./tool.js";

/** Time after the limit of the tool in which the server can report the timeout, in milliseconds. */
const GRACE = 5_000;
/** Time limit for a cancellation request, in milliseconds. */
const CANCEL = 2_000;

export interface ClientOptions {
  /** The URL of the yard, such as `https://tools.example.com`, including a path in front of `/mcp`. */
  baseURL: string;
  token?: string;
  /** Settings for retries. */
  retry?: RetryOptions;
  /** The time limit for requests other than executions, in milliseconds. Default: 30 000. */
  requestTimeout?: number;
  /** A custom `fetch`, for tests or special networks. */
  fetch?: Fetch;
}

export interface RequestOptions {
  query?: Query;
  headers?: Record<string, string>;
  /** Sent as JSON. */
  body?: unknown;
  signal?: AbortSignal;
}

export class MCPClient {
  readonly executions: Executions;
  readonly #target: Target;
  readonly #retry: Retry;
  readonly #requestTimeout: number;

  constructor(options: ClientOptions) {
    const fetch = options.fetch ?? ((input, init) => globalThis.fetch(input, init));
    this.#target = { baseURL: readBase(options.baseURL), token: readToken(options.token), fetch };
    this.#retry = new Retry(options.retry);
    this.#requestTimeout = options.requestTimeout ?? 30_000;
    this.executions = new Executions(this);
  }

  /** Returns all matching tools that the caller may use. */
  async discoverTools(filters: ToolFilters = {}): Promise<Tool[]> {
    const { signal, pageSize, tags, ...rest } = filters;
    const tools: Tool[] = [];
    let cursor: string | undefined;
    do {
      const query: Query = { ...rest, tag: tags, limit: pageSize, cursor };
      const page = (await this.request("GET", "/mcp/tools", signal ? { query, signal } : { query })) as {
        tools?: Tool[];
        nextCursor?: string;
      };
      if (!Array.isArray(page?.tools)) throw new UnexpectedAnswerError("the response has no `tools` array");
      tools.push(...page.tools);
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    return tools;
  }

  /** Returns the details of one tool. */
  async getTool(name: string, options: { signal?: AbortSignal } = {}): Promise<ToolDetails> {
    return (await this.request("GET", `/mcp/tools/${segment(name)}`, options)) as ToolDetails;
  }

  /** Executes a tool and returns the response. Throws an MCPError if the execution fails. */
  async executeTool<Result = unknown>(
    name: string,
    params: object = {},
    options: ExecuteOptions = {},
  ): Promise<ExecutionResponse<Result>> {
    const harmless = options.idempotencyKey !== undefined || options.idempotent === true;
    const path = `/mcp/tools/${segment(name)}/execute`;
    const response = await this.#withRetries(harmless ? "harmless" : "only-if-refused", options.signal, () =>
      this.#executeOnce(path, params, options),
    );
    return response as ExecutionResponse<Result>;
  }

  /** Sends any other API request and returns its JSON response. GET and HEAD are retried. */
  async request(method: string, path: string, options: RequestOptions = {}): Promise<unknown> {
    const repeat: Repeat = method === "GET" || method === "HEAD" ? "harmless" : "only-if-refused";
    return this.#withRetries(repeat, options.signal, async () => {
      const late = new NetworkError(`${method} ${path} got no response within ${this.#requestTimeout} ms`);
      const limit = new Limit(options.signal, this.#requestTimeout, late);
      try {
        const { query, headers, body } = options;
        const sending: Sending = { method, path, query, headers, body, signal: limit.signal };
        return await readJSON(sending, await exchange(this.#target, sending));
      } finally {
        limit.lift();
      }
    });
  }

  async #executeOnce(path: string, params: object, options: ExecuteOptions): Promise<ExecutionResponse> {
    const { timeout, idempotencyKey } = options;
    const late = new ExecutionTimeoutError("TIMEOUT_ERROR", `no response within ${timeout} ms plus ${GRACE} ms`);
    const limit = new Limit(options.signal, timeout === undefined ? undefined : timeout + GRACE, late);
    const sending = buildExecution(path, params, options, limit.signal);
    let id: string | undefined;
    try {
      const answer = await exchange(this.#target, sending);
      id = answer.headers.get("x-execution-id") ?? undefined;
      if (id !== undefined) await options.onStart?.(id);
      if (isStream(answer)) return await readStream(sending, answer, options);
      const response = (await readJSON(sending, answer)) as ExecutionResponse;
      if (response?.success !== true) {
        throw new UnexpectedAnswerError(`POST ${path} returned a response without \`success: true\``, { status: answer.status });
      }
      for (const chunk of response.chunks ?? []) await options.onChunk?.(chunk);
      return response;
    } catch (error) {
      // With a key, a lost connection does not cancel the execution: the server keeps the outcome for a retry.
      if (limit.signal?.aborted && idempotencyKey !== undefined && id !== undefined) await this.#cancelQuietly(id);
      throw error;
    } finally {
      limit.lift();
    }
  }

  async #cancelQuietly(id: string): Promise<void> {
    const signal = AbortSignal.timeout(CANCEL);
    const sending: Sending = { method: "DELETE", path: `/mcp/executions/${segment(id)}`, signal };
    // The caller gets the reason of the abort, so errors are ignored here.
    await exchange(this.#target, sending).then((answer) => answer.text(), () => undefined).catch(() => undefined);
  }

  async #withRetries<T>(repeat: Repeat, signal: AbortSignal | undefined, attempt: () => Promise<T>): Promise<T> {
    for (let tried = 1; ; tried += 1) {
      signal?.throwIfAborted();
      try {
        return await attempt();
      } catch (error) {
        if (signal?.aborted) throw error;
        const pause = this.#retry.pause(error, tried, repeat);
        if (pause === undefined) throw error;
        await sleep(pause, signal);
      }
    }
  }
}

/** Running and recently finished executions. */
export class Executions {
  readonly #client: MCPClient;

  constructor(client: MCPClient) {
    this.#client = client;
  }

  /** Returns recent executions, newest first. */
  async list(filters: ExecutionFilters = {}): Promise<Execution[]> {
    const answer = await this.#client.request("GET", "/mcp/executions", { query: { ...filters } });
    return (answer as { executions: Execution[] }).executions;
  }

  /** Returns one execution, with its outcome once it has ended. */
  async get(id: string): Promise<ExecutionDetails> {
    return (await this.#client.request("GET", `/mcp/executions/${segment(id)}`)) as ExecutionDetails;
  }

  /** Cancels an execution. An execution that has ended is not changed. */
  async cancel(id: string): Promise<Execution> {
    return (await this.#client.request("DELETE", `/mcp/executions/${segment(id)}`)) as Execution;
  }
}

/** Combines the signal of the caller with a time limit. */
class Limit {
  readonly signal: AbortSignal | undefined;
  readonly #lift: () => void;

  constructor(outer: AbortSignal | undefined, milliseconds: number | undefined, late: Error) {
    this.signal = outer;
    this.#lift = () => undefined;
    if (milliseconds === undefined) return;
    const both = new AbortController();
    const timer = setTimeout(() => both.abort(late), milliseconds);
    const pass = () => both.abort(outer?.reason);
    if (outer?.aborted) pass();
    outer?.addEventListener("abort", pass, { once: true });
    this.signal = both.signal;
    this.#lift = () => {
      clearTimeout(timer);
      outer?.removeEventListener("abort", pass);
    };
  }

  lift(): void {
    this.#lift();
  }
}

function buildExecution(path: string, params: object, options: ExecuteOptions, signal: AbortSignal | undefined): Sending {
  const { timeout, version, priority, sessionId, userId, idempotencyKey, content } = options;
  const callback = options.onProgress ?? options.onChunk ?? options.onLog ?? options.onStart;
  // With a key, an execution can only be canceled by its ID, so the ID must be known early.
  const events = callback !== undefined || (idempotencyKey !== undefined && signal !== undefined);
  const context = { timeout, version, priority, sessionId, userId, idempotencyKey };
  return {
    method: "POST",
    path,
    query: { content: content === "full" ? content : undefined },
    headers: { accept: events ? "text/event-stream" : "application/json" },
    body: { params, context },
    signal,
  };
}

/** Encodes a name as one path segment. `.` and `..` would change the path. */
function segment(name: string): string {
  if (typeof name !== "string" || name === "" || name === "." || name === "..") {
    throw new TypeError(`${JSON.stringify(name)} is not a valid name`);
  }
  return encodeURIComponent(name);
}

function readBase(text: string): string {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw new TypeError(`baseURL is not a valid URL: ${JSON.stringify(text)}`);
  }
  if (url.protocol !== "http:" && url.protocol !== "https:") throw new TypeError("baseURL must be an http or https URL");
  if (url.username !== "" || url.search !== "" || url.hash !== "") {
    throw new TypeError("baseURL must not contain a user, query or fragment");
  }
  return url.origin + url.pathname.replace(/\/+$/, "");
}

function readToken(token: string | undefined): string | undefined {
  // Errors do not contain the token, because they end up in logs.
  if (token !== undefined && !/^[\x21-\x7e]+$/.test(token)) {
    throw new TypeError("token must be printable ASCII without spaces or line breaks");
  }
  return token;
}
