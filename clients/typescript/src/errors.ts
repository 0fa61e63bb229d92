// Every way in which a call can fail, as one class per code of the REST protocol. What went wrong is told by the server;
// the two classes at the end are for when it told nothing that could be understood.

/** What is known of a failure beside its code and message. */
export interface ErrorFacts {
  /** The HTTP status; absent where the failure came as an event of a stream, or no answer came at all. */
  status?: number | undefined;
  details?: unknown;
  executionId?: string | undefined;
  /** Seconds after which trying again makes sense. */
  retryAfter?: number | undefined;
  /** Whether this is the kept outcome of an earlier execution with the same idempotency key. */
  replayed?: boolean;
  cause?: unknown;
}

/** Everything that this library throws on account of the server or the way to it. */
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

/** There is no such tool, or not for this caller. */
export class ToolNotFoundError extends MCPError {}
/** There is no such execution, or nothing at that address. */
export class NotFoundError extends MCPError {}

/** One thing that is wrong with a request. */
export interface Violation {
  /** Where, as a JSON pointer. */
  pointer: string;
  field: string;
  reason: string;
  provided: unknown;
}

/** The request is wrong, the parameters of the tool included; with status 409 an idempotency key was used for another. */
export class ValidationError extends MCPError {
  /** Everything that is wrong with it. */
  get violations(): Violation[] {
    const listed = (this.details as { violations?: unknown } | null | undefined)?.violations;
    return Array.isArray(listed) ? (listed as Violation[]) : [];
  }
}
/** The token is missing, unknown or expired. */
export class AuthenticationError extends MCPError {}
/** The caller lacks a permission. */
export class PermissionDeniedError extends MCPError {}
/** Too many calls; nothing was executed. */
export class RateLimitError extends MCPError {}
/** The request is larger than the server takes. */
export class PayloadTooLargeError extends MCPError {}
/** The body was not sent as JSON in UTF-8. */
export class UnsupportedMediaTypeError extends MCPError {}
/** The address is for other methods. */
export class MethodNotAllowedError extends MCPError {}
/** The tool took longer than it may. */
export class ExecutionTimeoutError extends MCPError {}
/** Somebody cancelled the execution. */
export class ExecutionCancelledError extends MCPError {}
/** The tool failed, or the server behind it cannot be reached (status 502). */
export class ExecutionError extends MCPError {}
/** A bug of the server; the details have the id under which its log has it. */
export class InternalError extends MCPError {}

/** The server could not be reached, or the connection broke before there was an answer. */
export class NetworkError extends MCPError {
  constructor(message: string, facts: ErrorFacts = {}) {
    super("NETWORK_ERROR", message, facts);
  }
}

/** An answer that is not in the words of the protocol, such as the error page of a proxy. */
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

/** The error for what a server said; a code that is not known yet is still an MCPError. */
export function errorFor(code: string, message: string, facts: ErrorFacts): MCPError {
  const known = Object.hasOwn(CLASSES, code) ? CLASSES[code] : undefined;
  return new (known ?? MCPError)(code, message, facts);
}
