// Reads the event stream of an execution: passes events to the callbacks and returns the envelope at the end.

import { NetworkError, UnexpectedAnswerError } from "./errors.js";
import { EventReader, type ServerEvent } from "./events.js";
import { errorIn, orBroken, type Sending } from "./exchange.js";
import type { ExecuteOptions, ExecutionResponse, LogLine, Progress } from "./execution.js";

/** The maximum time without data in milliseconds. The server sends a keep-alive every 15 seconds. */
const SILENCE = 60_000;

export function isStream(answer: Response): boolean {
  return /^text\/event-stream\s*(;|$)/i.test(answer.headers.get("content-type") ?? "");
}

export async function readStream(sending: Sending, answer: Response, options: ExecuteOptions): Promise<ExecutionResponse> {
  if (answer.body === null) throw new UnexpectedAnswerError("the stream has no body", { status: answer.status });
  const source = answer.body.getReader();
  try {
    const [reader, decoder] = [new EventReader(), new TextDecoder()];
    for (;;) {
      const { done, value } = await orBroken(sending, () => unlessSilent(source.read()));
      if (done) break;
      for (const event of reader.push(decoder.decode(value, { stream: true }))) {
        const response = await handleEvent(event, options);
        if (response) return response;
      }
    }
    throw new NetworkError("the stream ended before the execution did");
  } finally {
    // Before the last event, this cancels the execution.
    await source.cancel().catch(() => undefined);
  }
}

function unlessSilent<T>(reading: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`no data for ${SILENCE} ms`)), SILENCE);
    reading.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

async function handleEvent(event: ServerEvent, options: ExecuteOptions): Promise<ExecutionResponse | undefined> {
  switch (event.event) {
    case "progress":
      await options.onProgress?.(read(event) as Progress);
      return undefined;
    case "chunk":
      await options.onChunk?.(read(event));
      return undefined;
    case "log":
      await options.onLog?.(read(event) as LogLine);
      return undefined;
    case "result": {
      const response = read(event) as ExecutionResponse;
      // An execution that ended before it could be streamed has its chunks in the envelope.
      for (const chunk of response.chunks ?? []) await options.onChunk?.(chunk);
      return response;
    }
    case "error":
      throw (
        errorIn(read(event), {}) ?? new UnexpectedAnswerError("the execution failed with an error that cannot be parsed")
      );
    default:
      return undefined;
  }
}

function read(event: ServerEvent): unknown {
  try {
    return JSON.parse(event.data);
  } catch (cause) {
    throw new UnexpectedAnswerError(`the data of the event \`${event.event}\` is not valid JSON`, { cause });
  }
}
