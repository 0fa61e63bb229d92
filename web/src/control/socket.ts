// A connection to the yard that outlives its sockets: requests, notifications about them, and events, in order and exactly
// once. It does not interpret the messages.

import { parse } from "./json";
import type { Failure, Message, Note, Welcome, YardEvent } from "./messages";

/** `locked` means that a token is required, `foreign` that the yard rejects the origin of this page. */
export type LinkState = "connecting" | "open" | "down" | "locked" | "foreign";

/** A request that was rejected, or whose connection was lost. */
export class Refused extends Error {
  readonly code: string;
  readonly suggestion: string | undefined;
  readonly details: unknown;
  constructor(failure: Failure) {
    super(failure.message);
    this.code = failure.code;
    this.suggestion = failure.suggestion;
    this.details = failure.details;
  }
}

export const LOST = "CONNECTION_LOST";

export interface Surroundings {
  open(protocols: string[]): WebSocket;
  token(): string | null;
  /** Finds out why a socket closed without a reason. */
  probe(): Promise<LinkState>;
  /** Runs a function before the next frame. */
  soon(run: () => void): void;
  later(run: () => void, ms: number): () => void;
  random(): number;
}

export interface Listener {
  state(state: LinkState): void;
  welcome(welcome: Welcome): void;
  events(events: YardEvent[]): void;
  /** The known state may be outdated: reload everything. */
  stale(): void;
  /** The known state is valid, and the missed events follow. */
  resumed(): void;
}

interface Pending {
  frame: Record<string, unknown>;
  note: ((note: Note) => void) | undefined;
  done(response: Record<string, unknown>): void;
  fail(error: Refused): void;
}

const PROTOCOL = "toolyard.control.v1";
const FIRST_WAIT = 250;
const LONGEST_WAIT = 8_000;
const SILENCE = 25_000;
const WELCOME_WITHIN = 600;

export class Control {
  private socket: WebSocket | null = null;
  private state: LinkState = "down";
  private welcomed = false;
  private attempts = 0;
  private next = 1;
  private seq: number | null = null;
  private readonly pending = new Map<number, Pending>();
  private waiting: number[] = [];
  private queue: (Note | YardEvent)[] = [];
  private drawing = false;
  private stopRetry: (() => void) | null = null;
  private stopBeat: (() => void) | null = null;
  private heard = false;

  constructor(
    private readonly around: Surroundings,
    private readonly listener: Listener,
    private readonly events: () => string[],
  ) {}

  /** Connects, or reconnects immediately, for example with a new token. */
  connect(): void {
    this.stopRetry?.();
    this.stopRetry = null;
    this.drop();
    this.say("connecting");
    const token = this.around.token();
    const protocols = token ? [PROTOCOL, `toolyard.token.${base64url(token)}`] : [PROTOCOL];
    let socket: WebSocket;
    try {
      socket = this.around.open(protocols);
    } catch {
      this.retry();
      return;
    }
    this.socket = socket;
    socket.onmessage = (frame) => this.socket === socket && this.receive(String(frame.data));
    socket.onclose = (end) => this.socket === socket && this.closed(end.code);
    if (!token) {
      // A yard that requires a token waits for it without sending anything.
      const stop = this.around.later(() => {
        if (this.socket === socket && !this.welcomed) this.say("locked");
      }, WELCOME_WITHIN);
      socket.addEventListener("close", stop);
    }
  }

  /** Connects as another principal, with possibly different data. */
  reconnect(): void {
    this.seq = null;
    this.connect();
  }

  /** Sends a request. `note` receives the notifications about it. */
  ask(subtype: string, fields: Record<string, unknown> = {}, note?: (note: Note) => void) {
    const id = this.next++;
    const frame = { id, subtype, ...fields };
    const done = new Promise<Record<string, unknown>>((resolve, reject) => {
      this.pending.set(id, { frame, note, done: resolve, fail: reject });
    });
    if (this.welcomed) this.send(frame);
    else this.waiting.push(id);
    return { id, done };
  }

  private receive(text: string): void {
    this.heard = true;
    let message: Message;
    try {
      message = parse(text) as Message;
    } catch {
      return;
    }
    switch (message.type) {
      case "welcome":
        this.enter(message);
        return;
      case "response":
      case "error":
        this.drain();
        this.end(message);
        return;
      default:
        this.queue.push(message);
        if (!this.drawing) {
          this.drawing = true;
          this.around.soon(() => {
            this.drawing = false;
            this.drain();
          });
        }
    }
  }

  private enter(welcome: Welcome): void {
    this.welcomed = true;
    this.attempts = 0;
    this.listener.welcome(welcome);
    this.say("open");
    void this.subscribe();
    for (const id of this.waiting.splice(0)) {
      const request = this.pending.get(id);
      if (request) this.send(request.frame);
    }
    this.beat();
  }

  private async subscribe(): Promise<void> {
    const after = this.seq;
    try {
      const { done } = this.ask("subscribe", { events: this.events(), ...(after === null ? {} : { after }) });
      const response = await done;
      if (after === null || response.missed === true) {
        this.seq = Number(response.seq ?? 0);
        this.listener.stale();
      } else this.listener.resumed();
    } catch (error) {
      // Lists work without events, so the page continues without them.
      if (error instanceof Refused && error.code !== LOST) this.listener.stale();
    }
  }

  private end(message: Extract<Message, { type: "response" | "error" }>): void {
    const request = message.id === null ? undefined : this.pending.get(message.id);
    if (!request || message.id === null) return;
    this.pending.delete(message.id);
    if (message.type === "response") request.done(message.response);
    else request.fail(new Refused(message.error));
  }

  /** Delivers the messages received since the last frame. */
  private drain(): void {
    const queue = this.queue;
    if (!queue.length) return;
    this.queue = [];
    const events: YardEvent[] = [];
    for (const message of queue) {
      if (message.type !== "event") {
        this.pending.get(message.id)?.note?.(message);
      } else if (this.seq === null || message.seq > this.seq) {
        this.seq = message.seq;
        events.push(message);
      }
    }
    if (events.length) this.listener.events(events);
  }

  private closed(code: number): void {
    const entered = this.welcomed;
    this.drop();
    if (code === 4401) return this.say("locked");
    if (entered) return this.retry();
    void this.around.probe().then((answer) => {
      if (this.socket || this.stopRetry) return;
      if (answer === "locked" || answer === "foreign") this.say(answer);
      else this.retry();
    });
  }

  private retry(): void {
    this.say("down");
    const wait = Math.min(FIRST_WAIT * 2 ** this.attempts++, LONGEST_WAIT);
    this.stopRetry = this.around.later(() => this.connect(), wait * (0.75 + this.around.random() / 2));
  }

  private drop(): void {
    this.drain();
    const socket = this.socket;
    this.socket = null;
    this.welcomed = false;
    this.stopBeat?.();
    this.stopBeat = null;
    if (socket) {
      socket.onmessage = null;
      socket.onclose = null;
      socket.close();
    }
    const waiting = new Set(this.waiting);
    for (const [id, request] of this.pending) {
      if (waiting.has(id)) continue;
      this.pending.delete(id);
      request.fail(new Refused({ code: LOST, message: "the connection to the yard was lost" }));
    }
  }

  /** Detects a dead connection, such as after a laptop slept. */
  private beat(): void {
    this.heard = false;
    this.stopBeat = this.around.later(() => {
      if (this.heard) return this.beat();
      const socket = this.socket;
      const stop = this.around.later(() => {
        if (this.socket === socket && !this.heard) this.connect();
      }, SILENCE / 2);
      this.ask("mcp_servers").done.then(
        () => {
          stop();
          if (this.socket === socket) this.beat();
        },
        () => stop(),
      );
    }, SILENCE);
  }

  private send(frame: Record<string, unknown>): void {
    this.socket?.send(JSON.stringify(frame));
  }

  private say(state: LinkState): void {
    if (this.state === state) return;
    this.state = state;
    this.listener.state(state);
  }
}

export function base64url(text: string): string {
  const bytes = new TextEncoder().encode(text);
  const binary = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}
