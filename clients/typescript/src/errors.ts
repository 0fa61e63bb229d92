// The errors of a call: one class per error code of the REST API. The last two classes are for failures without a valid
// response.

/** The properties of an error other than its code and message. */
export interface ErrorFacts {
  /** The HTTP status. Absent if the failure arrived as an event of a stream, or if there was no response. */
  status?: number | undefined;
  details?: unknown;
  executionId?: string | undefined;
  /** The number of seconds to wait before a retry. */
  retryAfter?: number | undefined;
  /** Whether this is the stored outcome of an earlier execution with the same idempotency key. */
  replayed?: boolean;
  cause?: unknown;
}

/** The base class of all errors caused by the server or the network. */
export class MCPError extends Error {
  readonly code: string;
  readonly status: number | undefined;
  readonly details: unknown;
  readonly executionId: string | undefined;
  readonly retryAfter: number | undefined;
  readonly replayed: boolean;

  constructor(code: string, message: string, facts: ErrorFacts = {}) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.name = new.target.name;
    this.code = code;
    this.status = facts.status;
    this.details = facts.details;
    this.executionId = facts.executionId;
    this.retryAfter = facts.retryAfter;
    this.replayed = facts.replayed ?? false;
  }
}

/** The tool does not exist, or the caller may not use it. */
export class ToolNotFoundError extends MCPError {}
/** The execution or the path does not exist. */
export class NotFoundError extends MCPError {}

/** A violation in a request. */
export interface Violation {
  /** The location as a JSON Pointer. */
  pointer: string;
  field: string;
  reason: string;
  provided: unknown;
}

/** The request or the parameters are invalid. Status 409: the idempotency key belongs to another request. */
export class ValidationError extends MCPError {
  /** All violations. */
  get violations(): Violation[] {
    const listed = (this.details as { violations?: unknown } | null | undefined)?.violations;
    return Array.isArray(listed) ? (listed as Violation[]) : [];
  }
}
/** The token is missing, unknown or expired. */
export class AuthenticationError extends MCPError {}
/** The caller lacks a permission. */
export class PermissionDeniedError extends MCPError {}
/** The rate limit is exceeded; nothing was executed. */
export class RateLimitError extends MCPError {}
/** The request exceeds the size limit of the server. */
export class PayloadTooLargeError extends MCPError {}
/** The body was not sent as JSON in UTF-8. */
export class UnsupportedMediaTypeError extends MCPError {}
/** The path does not support this method. */
export class MethodNotAllowedError extends MCPError {}
/** The tool exceeded its time limit. */
export class ExecutionTimeoutError extends MCPError {}
/** The execution was canceled. */
export class ExecutionCancelledError extends MCPError {}
/** The tool failed, or the server behind it cannot be reached (status 502). */
export class ExecutionError extends MCPError {}
/** An internal error of the server; the details contain the ID of the log entry. */
export class InternalError extends MCPError {}

/** The server could not be reached, or the connection broke before the response was complete. */
export class NetworkError extends MCPError {
  constructor(message: string, facts: ErrorFacts = {}) {
    super("NETWORK_ERROR", message, facts);
  }
}

/** A response that does not follow the protocol, such as the error page of a proxy. */
export class UnexpectedAnswerError extends MCPError {
  constructor(message: string, facts: ErrorFacts = {}) {
    super("UNEXPECTED_ANSWER", message, facts);
  }
}

const CLASSES: Record<string, new (code: string, message: string, facts: ErrorFacts) => MCPError> = {
  TOOL_NOT_FOUND: ToolNotFoundError,
  NOT_FOUND: NotFoundError,
  VALIDATION_ERROR: ValidationError,
  AUTHENTICATION_ERROR: AuthenticationError,
  PERMISSION_ERROR: PermissionDeniedError,
  RATE_LIMIT_ERROR: RateLimitError,
  PAYLOAD_TOO_LARGE: PayloadTooLargeError,
  UNSUPPORTED_MEDIA_TYPE: UnsupportedMediaTypeError,
  METHOD_NOT_ALLOWED: MethodNotAllowedError,
  TIMEOUT_ERROR: ExecutionTimeoutError,
  CANCELLED: ExecutionCancelledError,
  EXECUTION_ERROR: ExecutionError,
  INTERNAL_ERROR: InternalError,
};

/** Returns the error for a code. An unknown code gives a plain MCPError. */
export function errorFor(code: string, message: string, facts: ErrorFacts): MCPError {
  const known = Object.hasOwn(CLASSES, code) ? CLASSES[code] : undefined;
  return new (known ?? MCPError)(code, message, facts);
}
