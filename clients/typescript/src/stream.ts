// An execution that is answered with events: hands on what is said meanwhile and gives back the envelope at its end.

import { NetworkError, UnexpectedAnswerError } from "./errors.js";
import { EventReader, type ServerEvent } from "./events.js";
import { errorIn, orBroken, type Sending } from "./exchange.js";
import type { ExecuteOptions, ExecutionResponse, LogLine, Progress } from "./execution.js";

export function isStream(answer: Response): boolean {
  return /^text\/event-stream\s*(;|$)/i.test(answer.headers.get("content-type") ?? "");
}

export async function readStream(sending: Sending, answer: Response, options: ExecuteOptions): Promise<ExecutionResponse> {
  if (answer.body === null) throw new UnexpectedAnswerError("the stream has no body", { status: answer.status });
  const source = answer.body.getReader();
  try {
    const [reader, decoder] = [new EventReader(), new TextDecoder()];
    for (;;) {
      const { done, value } = await orBroken(sending, () => source.read());
      if (done) break;
      for (const event of reader.push(decoder.decode(value, { stream: true }))) {
        const response = await hear(event, options);
        if (response) return response;
      }
    }
    throw new NetworkError("the stream ended before the execution did");
  } finally {
    // After the last event there is nothing left to lose; before, this is what cancels.
    await source.cancel().catch(() => undefined);
  }
}

async function hear(event: ServerEvent, options: ExecuteOptions): Promise<ExecutionResponse | undefined> {
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
      // What was over before it could be streamed has its pieces in the envelope.
      for (const chunk of response.chunks ?? []) await options.onChunk?.(chunk);
      return response;
    }
    case "error":
      throw (
        errorIn(read(event), {}) ?? new UnexpectedAnswerError("the execution failed in words that cannot be understood")
      );
    default:
      return undefined;
  }
}

function read(event: ServerEvent): unknown {
  try {
    return JSON.parse(event.data);
  } catch (cause) {
    throw new UnexpectedAnswerError(`the event ${event.event} is no JSON`, { cause });
  }
}
