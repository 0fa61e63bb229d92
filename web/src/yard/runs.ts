// The calls that this page makes: their progress, output, requests for input, and outcome.

import { computed, markRaw, reactive, shallowReactive } from "vue";
import { amount, isObject } from "../control/json";
import type { Failure, Note, Question } from "../control/messages";
import { LOST, Refused } from "../control/socket";
import { bytes } from "../show/words";
import { ask } from "./yard";

export type RunState = "running" | "asking" | "succeeded" | "failed" | "cancelled";

export interface Run {
  key: number;
  request: number;
  tool: string;
  arguments: unknown;
  sessionId: string;
  state: RunState;
  startedAt: number;
  progress?: number | undefined;
  total?: number | undefined;
  message?: string | undefined;
  chunks: unknown[];
  chunksLeftOut: number;
  lines: { level: string; text: string }[];
  questions: Question[];
  executionId?: string;
  durationMs?: number;
  size?: number;
  result?: unknown;
  failure?: Failure;
}

const KEPT = 50;
const PIECES = 2_000;
/** The requests that the user can answer. Roots are not included: the page has none, so a server gets an empty list. */
const ASKS: Question["kind"][] = ["elicit_form", "elicit_url", "sample"];
const runs = shallowReactive<Run[]>([]);
let next = 1;

/** The latest call of a tool from this page. */
export function latest(tool: () => string) {
  return computed(() => runs.find((run) => run.tool === tool()));
}

/** Returns a call by its execution ID, if this page made it. */
export function madeHere(executionId: string): Run | undefined {
  return runs.find((run) => run.executionId === executionId);
}

export function start(tool: string, args: unknown, timeout?: number): Run {
  const run: Run = reactive({
    key: next++,
    request: 0,
    tool,
    arguments: freeze(args),
    sessionId: `page-${crypto.randomUUID()}`,
    state: "running",
    startedAt: Date.now(),
    chunks: shallowReactive([]),
    chunksLeftOut: 0,
    lines: shallowReactive([]),
    questions: [],
  });
  const fields = { tool, arguments: args, session_id: run.sessionId, asks: ASKS, ...(timeout ? { timeout_ms: timeout } : {}) };
  const { id, done } = ask<Ended>("mcp_call", fields, (note) => hear(run, note));
  run.request = id;
  runs.unshift(run);
  runs.splice(KEPT);
  done.then((response) => end(run, response)).catch((error) => fail(run, error));
  return run;
}

interface Ended {
  executionId?: string;
  durationMs?: number;
  result: unknown;
}

/** Excludes a value from reactivity: the output of a tool never changes. */
function freeze(value: unknown): unknown {
  return typeof value === "object" && value !== null ? markRaw(value) : value;
}

function hear(run: Run, note: Note): void {
  switch (note.type) {
    case "progress":
      // Progress that decreases is shown; values that are not finite numbers are ignored.
      run.progress = finite(note.progress) ?? run.progress;
      run.total = finite(note.total);
      run.message = note.message;
      return;
    case "chunk":
      if (run.chunks.length < PIECES) run.chunks.push(freeze(note.chunk));
      else run.chunksLeftOut++;
      return;
    case "log":
      run.lines.push({ level: String(note.level ?? "info"), text: words(note.data) });
      if (run.lines.length > PIECES) run.lines.splice(0, run.lines.length - PIECES);
      return;
    case "ask":
      run.questions = [...run.questions, ...note.questions];
      run.state = "asking";
  }
}

function finite(value: unknown): number | undefined {
  const counted = amount(value);
  return Number.isFinite(counted) ? counted : undefined;
}

function words(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function end(run: Run, response: Ended): void {
  run.executionId = response.executionId;
  run.durationMs = response.durationMs ?? Date.now() - run.startedAt;
  run.result = freeze(response.result);
  run.size = bytes(JSON.stringify(response.result) ?? "");
  run.questions = [];
  // A tool that reports an error has a result, too.
  run.state = isObject(response.result) && response.result.isError === true ? "failed" : "succeeded";
}

function fail(run: Run, error: unknown): void {
  const refused = error instanceof Refused ? error : new Refused({ code: "INTERNAL_ERROR", message: String(error) });
  run.questions = [];
  run.durationMs = Date.now() - run.startedAt;
  if (refused.code === "CANCELLED") {
    run.state = "cancelled";
    return;
  }
  run.state = "failed";
  const lost = refused.code === LOST ? "check the list of calls to see whether the tool ran" : undefined;
  run.failure = {
    code: refused.code,
    message: refused.message,
    suggestion: refused.suggestion ?? lost,
    details: freeze(refused.details),
  };
}

export async function cancel(run: Run): Promise<void> {
  await ask("mcp_cancel", { request: run.request }).done;
}

export async function answer(run: Run, answers: Record<string, unknown>): Promise<void> {
  await ask("mcp_answer", { request: run.request, answers }).done;
  run.questions = run.questions.filter((question) => !(question.key in answers));
  if (run.state === "asking" && !run.questions.length) run.state = "running";
}
