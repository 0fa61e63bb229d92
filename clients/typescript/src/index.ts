// The public API of this package.

export { Executions, MCPClient, type ClientOptions, type RequestOptions } from "./client.js";
export type { Fetch, Query } from "./exchange.js";
export {
  AuthenticationError,
  ExecutionCancelledError,
  ExecutionError,
  ExecutionTimeoutError,
  InternalError,
  MCPError,
  MethodNotAllowedError,
  NetworkError,
  NotFoundError,
  PayloadTooLargeError,
  PermissionDeniedError,
  RateLimitError,
  ToolNotFoundError,
  UnexpectedAnswerError,
  UnsupportedMediaTypeError,
  ValidationError,
  type ErrorFacts,
  type Violation,
} from "./errors.js";
export * from "./execution.js";
export type { RetryOptions } from "./retry.js";
export * from "./tool.js";
