// The calls of the yard, oldest first and without duplicates, up to a limit.

import type { Call, YardEvent } from "../control/messages";

export interface Entry {
  call: Call;
  progress?: number;
  total?: number;
  message?: string;
}

export const KEPT = 2_000;

export class Timeline {
  private readonly byId = new Map<string, Entry>();
  private order: string[] = [];

  get length(): number {
    return this.order.length;
  }

  get(id: string): Entry | undefined {
    return this.byId.get(id);
  }

  /** Applies events; returns whether anything changed. */
  apply(events: YardEvent[]): boolean {
    let changed = false;
    for (const event of events) {
      if (event.event === "call_started" || event.event === "call_ended") {
        changed = this.put(event.call as Call) || changed;
      } else if (event.event === "call_progress") {
        const entry = this.byId.get(String(event.id));
        if (!entry || entry.call.status !== "running") continue;
        const { progress, total, message } = event as unknown as { progress: number; total?: number; message?: string };
        this.byId.set(entry.call.id, { ...entry, progress, total, message });
        changed = true;
      }
    }
    this.trim();
    return changed;
  }

  /** Adds earlier calls, in any order. */
  fill(calls: Call[]): void {
    for (const call of calls) this.put(call);
    const started = (id: string) => this.byId.get(id)?.call.startedAt ?? "";
    this.order.sort((a, b) => (started(a) < started(b) ? -1 : started(a) > started(b) ? 1 : 0));
    this.trim();
  }

  /** Returns the entries, newest first. */
  latest(): Entry[] {
    const entries: Entry[] = [];
    for (let at = this.order.length - 1; at >= 0; at--) {
      const entry = this.byId.get(this.order[at]!);
      if (entry) entries.push(entry);
    }
    return entries;
  }

  clear(): void {
    this.byId.clear();
    this.order = [];
  }

  private put(call: Call): boolean {
    const known = this.byId.get(call.id);
    // An outdated event about a finished call changes nothing.
    if (known && known.call.status !== "running" && call.status === "running") return false;
    if (!known) this.order.push(call.id);
    this.byId.set(call.id, { ...known, call });
    return true;
  }

  private trim(): void {
    if (this.order.length <= KEPT) return;
    for (const id of this.order.splice(0, this.order.length - KEPT)) this.byId.delete(id);
  }
}
