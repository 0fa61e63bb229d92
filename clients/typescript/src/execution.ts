// The types of an execution: options, events, and the response.

export interface ExecutionMetadata {
  executionId: string;
  /** Milliseconds. */
  duration: number;
  /** The start time in RFC 3339 format. */
  timestamp: string;
  [key: string]: unknown;
}

/** The response of a successful execution. A failed execution throws an MCPError. */
export interface ExecutionResponse<Result = unknown> {
  success: true;
  result: Result;
  /** The output chunks, if they were not streamed. */
  chunks?: unknown[];
  /** The number of further chunks that were not stored. */
  chunksLeftOut?: number;
  /** All content blocks, if `content: "full"` was requested. */
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
  /** Receives progress while the tool runs. */
  onProgress?: Heard<Progress>;
  /** Receives output chunks. */
  onChunk?: Heard<unknown>;
  /** Receives log lines. */
  onLog?: Heard<LogLine>;
  /** Receives the execution ID as soon as it is known. */
  onStart?: Heard<string>;
  /** The time limit of the tool in milliseconds. The server may enforce a lower one. */
  timeout?: number;
  /** Stops waiting and cancels the execution on the server. */
  signal?: AbortSignal;
  /** The version of the tool. Default: the newest. */
  version?: string;
  priority?: "low" | "normal" | "high";
  sessionId?: string;
  userId?: string;
  /** Executes at most once per key: a repeated request gets the first outcome. Makes retries safe. */
  idempotencyKey?: string;
  /** States that the tool can safely run twice. Makes retries safe, like a key. */
  idempotent?: boolean;
  /** `"full"` adds all content blocks. */
  content?: "result" | "full";
}

export type ExecutionState = "running" | "succeeded" | "failed" | "cancelled";

/** A recorded execution. */
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
  /** The last reported progress. */
  progress?: Progress;
  [key: string]: unknown;
}

/** The outcome of an execution, successful or not. */
export type ExecutionOutcome =
  | ExecutionResponse
  | { success: false; error: { code: string; message: string; details?: unknown }; metadata: ExecutionMetadata };

/** An execution with its outcome, once it has ended. */
export interface ExecutionDetails extends Execution {
  response?: ExecutionOutcome;
}

export interface ExecutionFilters {
  state?: ExecutionState;
  tool?: string;
  /** The maximum number of executions, newest first: up to 1000. Default: 100. */
  limit?: number;
}
