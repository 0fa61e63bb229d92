// The client: which requests there are, and which of them are made again when they fail.

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

/** How long the server has, beyond the time that the tool has, to say that the time is over. */
const GRACE = 5_000;
/** How long giving up may take, to tell the server. */
const CANCEL = 2_000;

export interface ClientOptions {
  /** Where the yard is, such as `https://tools.example.com`; a path in front of `/mcp` belongs to it. */
  baseURL: string;
  token?: string;
  /** When requests are made again. */
  retry?: RetryOptions;
  /** The longest that a request other than an execution may take, in milliseconds. Default: 30 000. */
  requestTimeout?: number;
  /** Another `fetch`, for tests or for special networks. */
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

  /** Every tool that fits, as far as this caller may use it. */
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
      if (!Array.isArray(page?.tools)) throw new UnexpectedAnswerError("the list of tools has no tools");
      tools.push(...page.tools);
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    return tools;
  }

  /** Everything that is known of one tool. */
  async getTool(name: string, options: { signal?: AbortSignal } = {}): Promise<ToolDetails> {
    return (await this.request("GET", `/mcp/tools/${segment(name)}`, options)) as ToolDetails;
  }

  /** Executes a tool and gives back the response of the protocol; throws an MCPError if that fails. */
  async executeTool<Result = unknown>(
    name: string,
    params: object = {},
    options: ExecuteOptions = {},
  ): Promise<ExecutionResponse<Result>> {
    const harmless = options.idempotencyKey !== undefined || options.idempotent === true;
    const path = `/mcp/tools/${segment(name)}/execute`;
    const response = await this.#again(harmless ? "harmless" : "only-if-refused", options.signal, () =>
      this.#executeOnce(path, params, options),
    );
    return response as ExecutionResponse<Result>;
  }

  /** Any other request of this API, with the same rules: JSON in, JSON out, GET and HEAD are made again. */
  async request(method: string, path: string, options: RequestOptions = {}): Promise<unknown> {
    const repeat: Repeat = method === "GET" || method === "HEAD" ? "harmless" : "only-if-refused";
    return this.#again(repeat, options.signal, async () => {
      const late = new NetworkError(`${method} ${path} got no answer within ${this.#requestTimeout} ms`);
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
    const late = new ExecutionTimeoutError("TIMEOUT_ERROR", `no answer came within ${timeout} ms and some grace`);
    const limit = new Limit(options.signal, timeout === undefined ? undefined : timeout + GRACE, late);
    const sending = order(path, params, options, limit.signal);
    let id: string | undefined;
    try {
      const answer = await exchange(this.#target, sending);
      id = answer.headers.get("x-execution-id") ?? undefined;
      if (id !== undefined) await options.onStart?.(id);
      if (isStream(answer)) return await readStream(sending, answer, options);
      const response = (await readJSON(sending, answer)) as ExecutionResponse;
      if (response?.success !== true) {
        throw new UnexpectedAnswerError(`POST ${path} was answered without success`, { status: answer.status });
      }
      for (const chunk of response.chunks ?? []) await options.onChunk?.(chunk);
      return response;
    } catch (error) {
      // With a key, losing the connection does not cancel: the server keeps the outcome for who comes again.
      if (limit.signal?.aborted && idempotencyKey !== undefined && id !== undefined) await this.#tellToStop(id);
      throw error;
    } finally {
      limit.lift();
    }
  }

  async #tellToStop(id: string): Promise<void> {
    const signal = AbortSignal.timeout(CANCEL);
    const sending: Sending = { method: "DELETE", path: `/mcp/executions/${segment(id)}`, signal };
    // Nobody waits for this any more; what matters to the caller is that they gave up.
    await exchange(this.#target, sending).then((answer) => answer.text(), () => undefined).catch(() => undefined);
  }

  async #again<T>(repeat: Repeat, signal: AbortSignal | undefined, attempt: () => Promise<T>): Promise<T> {
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

/** What is under way, and what is just over. */
export class Executions {
  readonly #client: MCPClient;

  constructor(client: MCPClient) {
    this.#client = client;
  }

  /** Recent executions, the newest first. */
  async list(filters: ExecutionFilters = {}): Promise<Execution[]> {
    const answer = await this.#client.request("GET", "/mcp/executions", { query: { ...filters } });
    return (answer as { executions: Execution[] }).executions;
  }

  /** One of them, with its outcome once there is one. */
  async get(id: string): Promise<ExecutionDetails> {
    return (await this.#client.request("GET", `/mcp/executions/${segment(id)}`)) as ExecutionDetails;
  }

  /** Asks the server to stop it. One that is over stays as it is. */
  async cancel(id: string): Promise<Execution> {
    return (await this.#client.request("DELETE", `/mcp/executions/${segment(id)}`)) as Execution;
  }
}

/** The caller's own signal and a time limit as one signal. */
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

function order(path: string, params: object, options: ExecuteOptions, signal: AbortSignal | undefined): Sending {
  const { timeout, version, priority, sessionId, userId, idempotencyKey, content } = options;
  const heard = options.onProgress ?? options.onChunk ?? options.onLog ?? options.onStart;
  // With a key the id must be known early, because only that can then cancel.
  const events = heard !== undefined || (idempotencyKey !== undefined && signal !== undefined);
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

/** A name as one part of a path. Dots alone would lead somewhere else. */
function segment(name: string): string {
  if (typeof name !== "string" || name === "" || name === "." || name === "..") {
    throw new TypeError(`${JSON.stringify(name)} cannot be a name`);
  }
  return encodeURIComponent(name);
}

function readBase(text: string): string {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw new TypeError(`baseURL is no address: ${JSON.stringify(text)}`);
  }
  if (url.protocol !== "http:" && url.protocol !== "https:") throw new TypeError("baseURL must be http or https");
  if (url.username !== "" || url.search !== "" || url.hash !== "") {
    throw new TypeError("baseURL must have no user, query or fragment");
  }
  return url.origin + url.pathname.replace(/\/+$/, "");
}

function readToken(token: string | undefined): string | undefined {
  // The token itself is not told: errors end up in logs.
  if (token !== undefined && !/^[\x21-\x7e]+$/.test(token)) {
    throw new TypeError("token must be printable ASCII without spaces or line ends");
  }
  return token;
}
