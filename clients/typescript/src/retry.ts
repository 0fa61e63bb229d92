// When a request is made again, and how long to wait before. The rules are the same in the Python library.

import { MCPError, NetworkError } from "./errors.js";

export interface RetryOptions {
  /** How often a request is made again at most; 0 means never. Default: 3. */
  retries?: number;
  /** The longest first pause, in milliseconds; it doubles each time. Default: 250. */
  baseDelay?: number;
  /** The longest pause, in milliseconds. A server that asks for more is not asked again. Default: 30 000. */
  maxDelay?: number;
}

/** Whether making a request twice could do harm. */
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

  /** The pause before the next try in milliseconds, or undefined if there is to be none. */
  pause(error: unknown, tried: number, repeat: Repeat, random: () => number = Math.random): number | undefined {
    if (tried > this.retries || !(error instanceof MCPError) || !worthwhile(error, repeat)) return undefined;
    // Spread over the whole span, so that many who failed together do not come back together.
    const backoff = Math.min(this.maxDelay, this.baseDelay * 2 ** (tried - 1)) * random();
    if (error.retryAfter === undefined) return backoff;
    const asked = error.retryAfter * 1000;
    return asked > this.maxDelay ? undefined : asked + Math.min(backoff, this.maxDelay - asked);
  }
}

function worthwhile(error: MCPError, repeat: Repeat): boolean {
  // A refusal for the rate comes before anything is executed.
  if (error.status === 429) return true;
  // What is kept stays as it is, however often it is asked for.
  if (repeat !== "harmless" || error.replayed) return false;
  return error.status === 502 || error.status === 503 || error instanceof NetworkError;
}

function whole(name: string, value: number): number {
  if (!Number.isFinite(value) || value < 0) throw new TypeError(`${name} must be a number that is not negative`);
  return value;
}

/** Seconds to wait, from a Retry-After header: a number of seconds, or a date. */
export function readRetryAfter(header: string | null, now: number = Date.now()): number | undefined {
  if (header === null) return undefined;
  const text = header.trim();
  if (/^\d{1,9}$/.test(text)) return Number(text);
  const date = /^[A-Z][a-z]{2}, /.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, (date - now) / 1000);
}

/** Waits, unless the signal says otherwise. */
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
