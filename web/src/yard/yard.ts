// The state of the yard, kept up to date over the control socket. Views read it; only this file changes it.

import { computed, reactive, ref, shallowRef, triggerRef } from "vue";
import { keepToken, token } from "../address";
import type { Call, Lists, Note, Principal, Prompt, Replica, Server, Tool, Welcome, YardEvent } from "../control/messages";
import { Control, type LinkState, LOST, Refused } from "../control/socket";
import { problem } from "../show/words";
import { prepare, type Row } from "./search";
import { Timeline } from "./timeline";

const EVENTS = ["server", "changed", "resource", "call_started", "call_progress", "call_ended", "log", "stderr", "lagged"];
const OWN_EVENTS = EVENTS.filter((name) => name !== "log" && name !== "stderr");
/** Only for yards with several replicas: others may not know the event. */
const CLUSTER_EVENTS = [...EVENTS, "replicas"];
const LINES = 1_000;
const HISTORY = 200;

export interface LogLine {
  at: string;
  level: string;
  target: string;
  message: string;
}

export const link = ref<LinkState>("connecting");
/** Whether a token was rejected, not just missing. */
export const refused = ref(false);
export const principal = shallowRef<Principal | null>(null);
export const version = ref("");
export const servers = shallowRef<Server[] | null>(null);
export const rows = shallowRef<Row[] | null>(null);
/** The replica that this page is connected to, if the yard has several. */
export const replica = ref("");
export const replicas = shallowRef<Replica[]>([]);
/** Whether the store that the replicas share does not answer. */
export const storeLost = ref(false);
export const lists = shallowRef<Lists | null>(null);
export const prompts = shallowRef<Prompt[] | null>(null);
export const timeline = shallowRef(new Timeline());
export const older = ref<string | null>(null);
export const stderr = reactive(new Map<string, string[]>());
export const log = shallowRef<LogLine[]>([]);
export const updated = shallowRef<{ serverName: string; uri: string } | null>(null);
export const lagged = ref(0);
/** The errors of list requests, by subtype. */
export const troubles = reactive(new Map<string, string>());

export const byName = computed(() => new Map((rows.value ?? []).map((row) => [row.tool.fullName, row.tool])));

const address = () => `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/control`;
let wasOpen = false;

const control = new Control(
  {
    open: (protocols) => new WebSocket(address(), protocols),
    token,
    probe,
    soon: (run) => (document.hidden ? setTimeout(run, 200) : requestAnimationFrame(run)),
    later: (run, ms) => {
      const timer = setTimeout(run, ms);
      return () => clearTimeout(timer);
    },
    random: Math.random,
  },
  { state: follow, welcome, events, stale: () => void reload(), resumed },
  () => (!principal.value?.observe ? OWN_EVENTS : replica.value ? CLUSTER_EVENTS : EVENTS),
);

export function connect(): void {
  control.connect();
}

/** Connects with a new token. */
export function reconnect(): void {
  control.reconnect();
}

export function unlock(text: string): void {
  keepToken(text.trim());
  control.reconnect();
}

export function ask<T>(subtype: string, fields: Record<string, unknown> = {}, note?: (note: Note) => void) {
  const { id, done } = control.ask(subtype, fields, note);
  return { id, done: done as Promise<T> };
}

/** Sends a request to the REST front, with the token. */
export function fetchRest(path: string, options: RequestInit = {}): Promise<Response> {
  const given = token();
  const headers = { ...options.headers, ...(given ? { Authorization: `Bearer ${given}` } : {}) };
  return fetch(path, { ...options, headers, cache: "no-store", credentials: "omit" });
}

async function probe(): Promise<LinkState> {
  try {
    const answer = await fetchRest("/mcp/tools?limit=1");
    return answer.status === 401 ? "locked" : answer.status === 403 ? "foreign" : "down";
  } catch {
    return "down";
  }
}

function follow(state: LinkState): void {
  if (state === "locked") refused.value = token() !== null;
  if (state === "open") wasOpen = true;
  link.value = state === "connecting" && wasOpen ? "down" : state;
}

function welcome(message: Welcome): void {
  principal.value = message.principal;
  version.value = message.server.version;
  replica.value = message.replica ?? "";
}

async function read<T>(subtype: string, fields: Record<string, unknown>, take: (response: T) => void): Promise<void> {
  try {
    take(await ask<T>(subtype, fields).done);
    troubles.delete(subtype);
  } catch (error) {
    if (!(error instanceof Refused)) return;
    // A lost request is repeated after the reconnect.
    if (error.code === LOST) unread = true;
    else troubles.set(subtype, problem(error));
  }
}

/** Whether a list request was lost with the connection. */
let unread = false;
function resumed(): void {
  if (unread) void reload();
}

/** The events received during a history request, whose response may lack them: one list per request. */
const meanwhile = new Set<YardEvent[]>();
async function reload(): Promise<void> {
  unread = false;
  const came: YardEvent[] = [];
  meanwhile.add(came);
  const calls = read<{ calls: Call[]; nextCursor?: string }>("mcp_history", { limit: HISTORY }, (response) => {
    const fresh = new Timeline();
    fresh.fill(response.calls);
    fresh.apply(came);
    timeline.value = fresh;
    older.value = response.nextCursor ?? null;
  }).finally(() => meanwhile.delete(came));
  await Promise.all([readServers(), readTools(), readPrompts(), readLists(), readReplicas(), calls]);
}

const readServers = () =>
  read<{ servers: Server[] }>("mcp_servers", {}, (response) => {
    servers.value = [...response.servers].sort((a, b) => a.name.localeCompare(b.name));
  });
async function readReplicas(): Promise<void> {
  if (!replica.value || !principal.value?.observe) return showReplicas([], undefined);
  await read<{ replicas: Replica[]; store?: string }>("mcp_replicas", {}, (response) => showReplicas(response.replicas, response.store));
}
function showReplicas(list: Replica[], store: unknown): void {
  replicas.value = list;
  storeLost.value = store === "unavailable";
}
const readTools = () =>
  read<{ tools: Tool[] }>("mcp_tools", {}, (response) => {
    rows.value = prepare(response.tools);
  });
const readPrompts = () =>
  read<{ prompts: Prompt[] }>("mcp_prompts", {}, (response) => {
    prompts.value = response.prompts;
  });
const readLists = () =>
  read<Lists>("mcp_list", {}, (response) => {
    lists.value = { resources: response.resources ?? {}, resource_templates: response.resource_templates ?? {} };
  });

/** Loads older calls. */
export async function readOlder(): Promise<void> {
  const cursor = older.value;
  if (!cursor) return;
  await read<{ calls: Call[]; nextCursor?: string }>("mcp_history", { limit: HISTORY, cursor }, (response) => {
    timeline.value.fill(response.calls);
    older.value = response.nextCursor ?? null;
    triggerRef(timeline);
  });
}

/** Pending reloads: several change events cause only one. */
const again = new Map<() => Promise<void>, ReturnType<typeof setTimeout>>();
function soon(reading: () => Promise<void>): void {
  if (again.has(reading)) return;
  again.set(
    reading,
    setTimeout(() => {
      again.delete(reading);
      void reading();
    }, 150),
  );
}

/** Redraws the calls: immediately, but throttled under load. */
const RARELY = 120;
let drawn = 0;
let drawing = false;
function draw(): void {
  if (drawing) return;
  drawing = true;
  setTimeout(
    () => {
      drawing = false;
      drawn = performance.now();
      triggerRef(timeline);
    },
    Math.max(0, drawn + RARELY - performance.now()),
  );
}

function events(batch: YardEvent[]): void {
  if (timeline.value.apply(batch)) draw();
  for (const came of meanwhile) came.push(...batch);
  const lines: LogLine[] = [];
  const changed = new Map<string, Server>();
  const gone = new Set<string>();
  for (const event of batch) {
    switch (event.event) {
      case "server":
        if (event.gone) gone.add(String(event.serverName));
        else changed.set((event.server as Server).name, event.server as Server);
        break;
      case "changed":
        if (event.tools) soon(readTools);
        if (event.resources) soon(readLists);
        if (event.prompts) soon(readPrompts);
        soon(readServers);
        break;
      case "resource":
        updated.value = { serverName: String(event.serverName), uri: String(event.uri) };
        break;
      case "log":
        lines.push({ at: event.at, level: String(event.level), target: String(event.target), message: String(event.message) });
        break;
      case "stderr":
        keepLine(String(event.serverName), event.replica && event.replica !== replica.value ? `${event.replica}: ${event.line}` : String(event.line));
        break;
      case "replicas":
        showReplicas(event.replicas as Replica[], event.store);
        break;
      case "lagged":
        lagged.value += Number(event.missed ?? 0);
        soon(reload);
        break;
    }
  }
  if (lines.length) log.value = [...log.value, ...lines].slice(-LINES);
  if (changed.size || gone.size) put(changed, gone);
}

function put(changed: Map<string, Server>, gone = new Set<string>()): void {
  const known = (servers.value ?? []).filter((server) => !changed.has(server.name) && !gone.has(server.name));
  servers.value = [...known, ...changed.values()].sort((a, b) => a.name.localeCompare(b.name));
}

function keepLine(server: string, line: string): void {
  const lines = stderr.get(server);
  // The standard error of this server was not opened yet; opening it loads all of it.
  if (!lines) return;
  lines.push(line);
  if (lines.length > LINES) lines.splice(0, lines.length - LINES);
}

/** Loads the standard error of a server; from then on, new lines are added. */
export async function readStderr(server: string): Promise<void> {
  const { lines } = await ask<{ lines: string[] }>("mcp_stderr", { server_name: server }).done;
  stderr.set(server, lines.slice(-LINES));
}

/** Reconnects, enables or disables a server. */
export async function manage(subtype: string, server: string): Promise<void> {
  const response = await ask<{ server: Server }>(subtype, { server_name: server }).done;
  put(new Map([[response.server.name, response.server]]));
}
