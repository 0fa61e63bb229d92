// Validates arguments in a worker, with a time limit.

import type { Fault } from "./validate";

export type Verdict = { faults: Fault[]; odd?: string };

const PATIENCE = 1_000;
let worker: Worker | null = null;
let next = 0;
const waiting = new Map<number, (verdict: Verdict) => void>();

function start(): Worker {
  const started = new Worker(new URL("./validate.worker.ts", import.meta.url), { type: "module" });
  started.onmessage = (message: MessageEvent<{ id: number; faults?: Fault[]; odd?: string }>) => {
    const { id, faults, odd } = message.data;
    waiting.get(id)?.({ faults: faults ?? [], ...(odd ? { odd: `The browser cannot validate against the schema: ${odd}` } : {}) });
    waiting.delete(id);
  };
  started.onerror = () => giveUp("The browser cannot validate against the schema.");
  return started;
}

function giveUp(odd: string): void {
  worker?.terminate();
  worker = null;
  for (const answer of waiting.values()) answer({ faults: [], odd });
  waiting.clear();
}

/** Validates a value. If the browser cannot do it, only the yard validates the call. */
export async function check(schema: unknown, value: unknown): Promise<Verdict> {
  worker ??= start();
  const id = next++;
  const verdict = new Promise<Verdict>((resolve) => waiting.set(id, resolve));
  worker.postMessage({ id, schema: JSON.stringify(schema ?? true), value: JSON.stringify(value ?? null) });
  const timer = setTimeout(() => waiting.has(id) && giveUp("Validation takes too long in the browser. The yard validates the arguments."), PATIENCE);
  return verdict.finally(() => clearTimeout(timer));
}
