// Tools as the server describes them.

export type JsonSchema = { [key: string]: unknown };

/** Hints of the one who offers the tool. They are the word of a stranger: show them, do not rely on them. */
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
  /** What only those who know the tool can read. */
  custom?: { [key: string]: unknown };
  [key: string]: unknown;
}

/** One tool of a list. */
export interface Tool {
  /** The name to execute it by. */
  name: string;
  title?: string;
  description: string;
  inputSchema: JsonSchema;
  outputSchema?: JsonSchema;
  annotations?: ToolAnnotations;
  /** The source that offers it. */
  server: string;
  metadata?: ToolMetadata;
  [key: string]: unknown;
}

/** Everything that is known of one tool. */
export interface ToolDetails extends Tool {
  /** Its name in the words of its own server. */
  rawName: string;
  displayName: string;
  /** What a caller needs, all of them. */
  permissions: string[];
  /** The versions that can be asked for, newest first, where there are several. */
  versions?: { version: string; deprecatedBy?: string }[];
}

/** Which tools are wanted: those that fit all that is said. */
export interface ToolFilters {
  server?: string;
  category?: string;
  /** All of these tags. */
  tags?: string[];
  /** Words, all of which are in the name, title, description or tags. */
  q?: string;
  /** How many tools are fetched at a time, up to 1000; all at once if not said. The list is complete either way. */
  pageSize?: number;
  signal?: AbortSignal;
}
