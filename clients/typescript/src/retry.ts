// Decides when a request is retried, and after which delay. The Python library follows the same rules.

import { MCPError, NetworkError } from "./errors.js";

export interface RetryOptions {
  /** The maximum number of retries. 0 disables retries. Default: 3. */
  retries?: number;
  /** The maximum first delay in milliseconds. It doubles with each retry. Default: 250. */
  baseDelay?: number;
  /** The maximum delay in milliseconds. A request with a longer `Retry-After` is not retried. Default: 30 000. */
  maxDelay?: number;
}

/** Whether a request can safely be repeated. */
export type Repeat = "harmless" | "only-if-refused";

export class Retry {
  readonly retries: number;
  readonly baseDelay: number;
  readonly maxDelay: number;

  constructor(options: RetryOptions = {}) {
    this.retries = whole("retries", options.retries ?? 3);
    this.baseDelay = whole("baseDelay", options.baseDelay ?? 250);
    this.maxDelay = whole("maxDelay", options.maxDelay ?? 30_000);
  }

  /** Returns the delay before the next attempt in milliseconds, or undefined if the request is not retried. */
  pause(error: unknown, tried: number, repeat: Repeat, random: () => number = Math.random): number | undefined {
    if (tried > this.retries || !(error instanceof MCPError) || !worthwhile(error, repeat)) return undefined;
    // Full jitter, so that clients that failed together do not retry together.
    const backoff = Math.min(this.maxDelay, this.baseDelay * 2 ** (tried - 1)) * random();
    if (error.retryAfter === undefined) return backoff;
    const requested = error.retryAfter * 1000;
    return requested > this.maxDelay ? undefined : requested + Math.min(backoff, this.maxDelay - requested);
  }
}

function worthwhile(error: MCPError, repeat: Repeat): boolean {
  // The rate limit applies before anything is executed.
  if (error.status === 429) return true;
  // A stored outcome does not change.
  if (repeat !== "harmless" || error.replayed) return false;
  return error.status === 502 || error.status === 503 || error instanceof NetworkError;
}

function whole(name: string, value: number): number {
  if (!Number.isFinite(value) || value < 0) throw new TypeError(`${name} must be a non-negative number`);
  return value;
}

/** Parses a Retry-After header, a number of seconds or a date, into seconds to wait. */
export function readRetryAfter(header: string | null, now: number = Date.now()): number | undefined {
  if (header === null) return undefined;
  const text = header.trim();
  if (/^\d{1,9}$/.test(text)) return Number(text);
  const date = /^[A-Z][a-z]{2}, /.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, (date - now) / 1000);
}

/** Waits, unless the signal is aborted. */
export function sleep(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, milliseconds);
    signal?.addEventListener("abort", stop, { once: true });
  });
}
