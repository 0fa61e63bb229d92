import { beforeEach, describe, expect, it } from "vitest";
import { base64url, Control, type LinkState, LOST, type Refused } from "../src/control/socket";

class FakeSocket {
  sent: Record<string, unknown>[] = [];
  onmessage: ((frame: { data: string }) => void) | null = null;
  onclose: ((end: { code: number }) => void) | null = null;
  closed = false;
  constructor(readonly protocols: string[]) {}
  send(text: string) {
    this.sent.push(JSON.parse(text));
  }
  close() {
    this.closed = true;
  }
  addEventListener() {}
  say(message: object) {
    this.onmessage?.({ data: JSON.stringify(message) });
  }
  of(subtype: string) {
    return this.sent.filter((order) => order.subtype === subtype);
  }
}

const welcome = { type: "welcome", protocol: 1, server: { name: "toolyard", version: "0" }, principal: { name: "p", manage: true, observe: true }, now: "" };
const event = (seq: number) => ({ type: "event", event: "log", seq, at: "", message: String(seq) });

let sockets: FakeSocket[];
let timers: { run: () => void; ms: number; stopped: boolean }[];
let frames: (() => void)[];
let states: LinkState[];
let seen: number[];
let stale: number;
let resumed: number;
let token: string | null;
let answer: LinkState;
let control: Control;

beforeEach(() => {
  [sockets, timers, frames, states, seen, stale, resumed, token, answer] = [[], [], [], [], [], 0, 0, "secret", "down"];
  control = new Control(
    {
      open: (protocols) => {
        const socket = new FakeSocket(protocols);
        sockets.push(socket);
        return socket as unknown as WebSocket;
      },
      token: () => token,
      probe: async () => answer,
      soon: (run) => void frames.push(run),
      later: (run, ms) => {
        const timer = { run, ms, stopped: false };
        timers.push(timer);
        return () => (timer.stopped = true);
      },
      random: () => 0.5,
    },
    {
      state: (state) => states.push(state),
      welcome: () => {},
      events: (events) => seen.push(...events.map((one) => one.seq)),
      stale: () => stale++,
      resumed: () => resumed++,
    },
    () => ["log"],
  );
  control.connect();
});

const last = () => sockets.at(-1)!;
const draw = () => frames.splice(0).forEach((run) => run());
const tick = () => new Promise((done) => setTimeout(done));
function subscribed(seq: number, missed = false) {
  const order = last().of("subscribe").at(-1)!;
  last().say({ type: "response", id: order.id, subtype: "subscribe", response: { subscribed: ["log"], seq, missed } });
  return tick();
}
const again = () => timers.filter((timer) => !timer.stopped && timer.ms < 10_000).at(-1)!.run();

describe("the connection to the yard", () => {
  it("sends the token as a subprotocol", () => {
    expect(last().protocols).toEqual(["toolyard.control.v1", "toolyard.token.c2VjcmV0"]);
    expect(base64url("ü?>")).toBe("w7w_Pg");
  });

  it("queues requests until the welcome and sends them once", () => {
    void control.ask("mcp_tools", { server_name: "x" });
    expect(last().sent).toEqual([]);
    last().say(welcome);
    expect(last().of("mcp_tools")).toEqual([{ id: 1, subtype: "mcp_tools", server_name: "x" }]);
  });

  it("delivers notifications before the response, in order", async () => {
    last().say(welcome);
    const notes: unknown[] = [];
    const { id, done } = control.ask("mcp_call", { tool: "t" }, (note) => notes.push(note));
    last().say({ type: "progress", id, progress: 1 });
    last().say({ type: "progress", id, progress: 2 });
    expect(notes).toEqual([]);
    last().say({ type: "response", id, subtype: "mcp_call", response: { result: 1 } });
    expect(notes).toEqual([{ type: "progress", id, progress: 1 }, { type: "progress", id, progress: 2 }]);
    expect(await done).toEqual({ result: 1 });
  });

  it("batches events until the next frame", async () => {
    last().say(welcome);
    await subscribed(0);
    for (let seq = 1; seq <= 5_000; seq++) last().say(event(seq));
    expect([seen.length, frames.length]).toEqual([0, 1]);
    draw();
    expect(seen.length).toBe(5_000);
  });

  it("resumes after the last event, without duplicates", async () => {
    last().say(welcome);
    await subscribed(4);
    expect([stale, last().of("subscribe")[0]!.after]).toEqual([1, undefined]);
    last().say(event(5));
    last().say(event(6));
    draw();
    last().onclose?.({ code: 1006 });
    again();
    last().say(welcome);
    expect(last().of("subscribe")[0]!.after).toBe(6);
    await subscribed(8);
    for (const seq of [6, 7, 8]) last().say(event(seq));
    draw();
    expect([seen, stale, resumed, sockets.length]).toEqual([[5, 6, 7, 8], 1, 1, 2]);
  });

  it("reloads everything if the yard cannot resume", async () => {
    last().say(welcome);
    await subscribed(100);
    last().onclose?.({ code: 1006 });
    again();
    last().say(welcome);
    await subscribed(3, true);
    last().say(event(4));
    draw();
    expect([stale, resumed, seen]).toEqual([2, 0, [4]]);
  });

  it("fails pending requests when the connection is lost", async () => {
    last().say(welcome);
    const { done } = control.ask("mcp_call", {});
    const ended = done.catch((error: Refused) => error.code);
    last().onclose?.({ code: 1006 });
    expect(await ended).toBe(LOST);
    expect(states).toEqual(["connecting", "open", "down"]);
  });

  it("requires a new token when its token is rejected, and does not retry", async () => {
    last().say(welcome);
    last().onclose?.({ code: 4401 });
    expect([states.at(-1), sockets.length, timers.filter((timer) => !timer.stopped && timer.ms < 10_000)]).toEqual(["locked", 1, []]);
    token = "other";
    control.reconnect();
    last().say(welcome);
    expect([states.at(-1), last().of("subscribe")[0]!.after]).toEqual(["open", undefined]);
  });

  it.each([["locked"], ["foreign"]] as const)("reports %s if the socket never opened", async (why) => {
    answer = why;
    last().onclose?.({ code: 1006 });
    await tick();
    expect(states.at(-1)).toBe(why);
  });

  it("backs off exponentially up to a limit", async () => {
    const waits: number[] = [];
    for (let round = 0; round < 8; round++) {
      last().onclose?.({ code: 1006 });
      await tick();
      waits.push(timers.at(-1)!.ms);
      again();
    }
    expect(waits).toEqual([250, 500, 1_000, 2_000, 4_000, 8_000, 8_000, 8_000]);
  });

  it("requires a token if the yard sends no welcome", () => {
    token = null;
    control.connect();
    expect(last().protocols).toEqual(["toolyard.control.v1"]);
    timers.at(-1)!.run();
    expect(states.at(-1)).toBe("locked");
  });

  it("ignores malformed messages", () => {
    last().onmessage?.({ data: "{" });
    last().say(welcome);
    last().say({ type: "response", id: 99, response: {} });
    last().say({ type: "error", id: null, error: { code: "x", message: "y" } });
    expect(states.at(-1)).toBe("open");
  });
});
