// The types of tools.

export type JsonSchema = { [key: string]: unknown };

/** Unverified hints of the server: show them, but do not rely on them. */
export interface ToolAnnotations {
  title?: string;
  readOnlyHint?: boolean;
  destructiveHint?: boolean;
  idempotentHint?: boolean;
  openWorldHint?: boolean;
  [key: string]: unknown;
}

export interface ToolMetadata {
  version?: string;
  author?: string;
  category?: string;
  tags?: string[];
  deprecates?: string;
  /** Metadata that is specific to the tool. */
  custom?: { [key: string]: unknown };
  [key: string]: unknown;
}

/** One tool of a list. */
export interface Tool {
  /** The name for `executeTool`. */
  name: string;
  title?: string;
  description: string;
  inputSchema: JsonSchema;
  outputSchema?: JsonSchema;
  annotations?: ToolAnnotations;
  /** The source of the tool. */
  server: string;
  metadata?: ToolMetadata;
  [key: string]: unknown;
}

/** The details of one tool. */
export interface ToolDetails extends Tool {
  /** The name on its own server. */
  rawName: string;
  displayName: string;
  /** The permissions that a caller needs. */
  permissions: string[];
  /** The available versions, newest first, if there are several. */
  versions?: { version: string; deprecatedBy?: string }[];
}

/** Filters for tools. A tool must match all of them. */
export interface ToolFilters {
  server?: string;
  category?: string;
  /** Tags that a tool must have. */
  tags?: string[];
  /** Words that must occur in the name, title, description or tags. */
  q?: string;
  /** The number of tools per request, up to 1000. Default: all. The returned list is always complete. */
  pageSize?: number;
  signal?: AbortSignal;
}
