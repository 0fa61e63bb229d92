// One execution: what is asked for, what is heard of it while it runs, and what comes back.

export interface ExecutionMetadata {
  executionId: string;
  /** Milliseconds. */
  duration: number;
  /** When it began, after RFC 3339. */
  timestamp: string;
  [key: string]: unknown;
}

/** What an execution that went well comes back with. One that did not is thrown as an MCPError. */
export interface ExecutionResponse<Result = unknown> {
  success: true;
  result: Result;
  /** What the tool sent ahead, where it was not streamed. */
  chunks?: unknown[];
  /** How many more pieces it sent ahead than are kept. */
  chunksLeftOut?: number;
  /** Every content block, where `content: "full"` was asked for. */
  content?: unknown[];
  metadata: ExecutionMetadata;
}

export interface Progress {
  progress: number;
  total?: number;
  message?: string;
}

export interface LogLine {
  level: string;
  logger?: string;
  data: unknown;
}

export type Heard<What> = (what: What) => void | Promise<void>;

export interface ExecuteOptions {
  /** Hears of progress while the tool runs. */
  onProgress?: Heard<Progress>;
  /** Gets what the tool sends ahead, piece by piece. */
  onChunk?: Heard<unknown>;
  /** Gets what the tool logs. */
  onLog?: Heard<LogLine>;
  /** Gets the id of the execution as soon as it is known, to ask for it or to cancel it from elsewhere. */
  onStart?: Heard<string>;
  /** The longest that the tool may take, in milliseconds. The server may allow less. */
  timeout?: number;
  /** Gives up, and cancels the execution on the server. */
  signal?: AbortSignal;
  /** The version of the tool that is wanted; the newest if none is said. */
  version?: string;
  priority?: "low" | "normal" | "high";
  sessionId?: string;
  userId?: string;
  /** The same key never runs twice: who comes again gets the first outcome. Makes retries safe. */
  idempotencyKey?: string;
  /** You know that running this tool twice does no harm. Makes retries safe, as a key does. */
  idempotent?: boolean;
  /** `"full"`: every content block too. */
  content?: "result" | "full";
}

export type ExecutionState = "running" | "succeeded" | "failed" | "cancelled";

/** An execution as the server remembers it. */
export interface Execution {
  executionId: string;
  tool: string;
  server?: string;
  state: ExecutionState;
  timestamp: string;
  duration: number;
  principal?: string;
  sessionId?: string;
  userId?: string;
  /** How far it had come when last heard of. */
  progress?: Progress;
  [key: string]: unknown;
}

/** What came of an execution, whichever way it went. */
export type ExecutionOutcome =
  | ExecutionResponse
  | { success: false; error: { code: string; message: string; details?: unknown }; metadata: ExecutionMetadata };

/** One of them with its outcome, once there is one. */
export interface ExecutionDetails extends Execution {
  response?: ExecutionOutcome;
}

export interface ExecutionFilters {
  state?: ExecutionState;
  tool?: string;
  /** At most so many, the newest first; up to 1000, 100 if not said. */
  limit?: number;
}
