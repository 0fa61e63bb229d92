// The messages of the control socket, as described in docs/reference/control.md. Payloads of tools are untrusted and typed
// `unknown`; code that shows them must check their type.

export type State = "disabled" | "starting" | "ready" | "needs_authorization" | "failed" | "retrying";
export type Auth = "unsupported" | "not_logged_in" | "bearer_token" | "o_auth";

export interface Server {
  name: string;
  state: State;
  reason?: string;
  suggestion?: string;
  transport?: string;
  era?: string;
  protocolVersion?: string;
  serverInfo?: { name: string; title?: string; version: string };
  auth: Auth;
  tools: number;
  resources: number;
  templates: number;
  prompts: number;
  warnings: string[];
  since: string;
  retryInMs?: number;
  /** The state at the other replicas, if there are any. */
  replicas?: { name: string; state: State; reason?: string }[];
}

export interface Tool {
  name: string;
  fullName: string;
  serverName: string;
  title?: string;
  description: string;
  inputSchema: Schema;
  outputSchema?: Schema;
  annotations?: Annotations;
  tags: string[];
  permissions: string[];
  version?: string;
  /** Why a schema cannot be used. Only `mcp_tool` returns it. */
  schemaProblem?: string;
  outputSchemaProblem?: string;
  definition: unknown;
}

export interface Annotations {
  title?: string;
  readOnlyHint?: boolean;
  destructiveHint?: boolean;
  idempotentHint?: boolean;
  openWorldHint?: boolean;
}

/** An untrusted JSON Schema: any key may be missing or have an unexpected type. */
export type Schema = { [key: string]: unknown } | boolean;

export interface Resource {
  uri: string;
  name?: string;
  title?: string;
  description?: string;
  mimeType?: string;
  size?: number;
}

export interface Template {
  uriTemplate: string;
  name?: string;
  title?: string;
  description?: string;
  mimeType?: string;
}

export interface Prompt {
  name: string;
  fullName: string;
  serverName: string;
  title?: string;
  description?: string;
  arguments?: { name: string; title?: string; description?: string; required?: boolean }[];
}

export type Status = "running" | "succeeded" | "failed" | "cancelled";

export interface Call {
  id: string;
  thing: string;
  subject: string;
  serverName?: string;
  principal: string;
  sessionId?: string;
  userId?: string;
  front?: string;
  startedAt: string;
  durationMs?: number;
  status: Status;
  error?: unknown;
  /** Where the call is made, if the yard has several replicas. */
  replica?: string;
}

export interface Replica {
  id: string;
  name: string;
  url: string;
  version: string;
  state: "ready" | "draining";
  differences: string[];
  self: boolean;
  connected: boolean;
}

export interface Question {
  key: string;
  kind: "elicit_form" | "elicit_url" | "sample" | "roots";
  params: unknown;
}

export interface Principal {
  name: string;
  manage: boolean;
  observe: boolean;
}

export interface Welcome {
  type: "welcome";
  protocol: number;
  server: { name: string; version: string };
  principal: Principal;
  /** The replica that the socket is connected to, if the yard has several. */
  replica?: string;
  now: string;
}

export interface Failure {
  code: string;
  message: string;
  suggestion?: string;
  details?: unknown;
}

export interface Response {
  type: "response";
  id: number;
  subtype: string;
  response: Record<string, unknown>;
}

export interface Refusal {
  type: "error";
  id: number | null;
  subtype?: string;
  error: Failure;
}

/** A notification about a request before it ends. */
export type Note =
  | { type: "progress"; id: number; progress: number; total?: number; message?: string }
  | { type: "chunk"; id: number; chunk: unknown }
  | { type: "log"; id: number; level?: string; logger?: string; data: unknown }
  | { type: "ask"; id: number; questions: Question[] };

export interface YardEvent {
  type: "event";
  event: string;
  seq: number;
  at: string;
  [key: string]: unknown;
}

export type Message = Welcome | Response | Refusal | Note | YardEvent;

export interface TranscriptLine {
  seq: number;
  at: string;
  direction: string;
  text: string;
}

export interface Lists {
  resources: Record<string, Resource[]>;
  resource_templates: Record<string, Template[]>;
}
