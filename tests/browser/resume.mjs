// Failures with a real yard: lost connections, expired tokens, floods of events, and several tabs.
import { readFileSync, writeFileSync } from "node:fs";
import WebSocket from "ws";
import { at, connected, equal, holds, PATIENCE, rest, visit, visitor } from "./browser.mjs";
import { relay } from "./relay.mjs";

/** Cuts and restores the connection to the yard with a relay. */
export async function brokenConnections(tally, yard, browser) {
  const link = await relay(yard);
  const { context, wrong } = await visitor(browser, link.url);
  const page = await context.newPage();
  const lost = () => page.getByText("Connection to the yard lost").waitFor();
  const session = { sessionId: "cut" };
  const rows = () => page.locator("a.row .call > span:nth-child(2)").allInnerTexts();

  await tally.check("after a lost connection, no event is missing or shown twice", async () => {
    await visit(page, link, "/calls?session=cut");
    await connected(page);
    await rest(yard, "add", { a: 1, b: 1 }, session);
    await page.locator("a.row").first().waitFor();
    const slow = rest(yard, "count_down", { from: 10 }, session);
    await page.locator("a.row").nth(1).waitFor();
    for (let round = 0; round < 2; round++) {
      link.cut();
      await lost();
      await rest(yard, "add", { a: 2, b: round }, session);
      if (round === 0) await slow;
      link.restore();
      await connected(page);
      await page.locator("a.row").nth(2 + round).waitFor();
    }
    equal(await rows(), ["add", "add", "count_down", "add"], "the calls");
    await page.waitForFunction(() => [...document.querySelectorAll("a.row .state")].every((one) => one.textContent === "succeeded"));
    await rest(yard, "add", { a: 3, b: 3 }, session);
    await page.locator("a.row").nth(4).waitFor();
    equal((await rows()).length, 5, "calls in the end");
  });

  await tally.check("input and results are preserved after a lost connection", async () => {
    await visit(page, link, `/tools/add?args=${encodeURIComponent('{"a":30,"b":12}')}`);
    await page.getByRole("button", { name: "Call add" }).click();
    const result = page.getByRole("region", { name: "Call result" });
    await result.getByText("42").first().waitFor();
    await page.getByLabel(/^a\b/).first().fill("31");
    link.cut();
    await lost();
    link.restore();
    await connected(page);
    equal(await page.getByLabel(/^a\b/).first().inputValue(), "31");
    equal(await result.count(), 1, "results");
    await page.getByRole("button", { name: "Call add" }).click();
    await result.getByText("43").first().waitFor();
  });

  await tally.check("a call whose connection is lost reports an unknown outcome", async () => {
    await visit(page, link, `/tools/count_down?args=${encodeURIComponent('{"from":50}')}`);
    await page.getByRole("button", { name: "Call count_down" }).click();
    await page.waitForFunction(() => (document.querySelector("progress")?.value ?? 0) > 0);
    link.cut();
    await page.getByText("CONNECTION_LOST").waitFor();
    link.restore();
    await connected(page);
  });

  await tally.check("no hidden errors while connections are lost", async () => equal(wrong, []));
  await context.close();
  link.stop();
}

/** Lets a token of the configuration expire. */
export async function expiry(tally, yard, context, config) {
  const page = await context.newPage();
  await tally.check("an expired token shows the sign-in form, and the input is preserved", async () => {
    await page.goto(at({ url: yard.url, token: "the token of ada" }, "/tools/add"));
    await page.getByLabel(/^a\b/).first().fill("17");
    const before = readFileSync(config, "utf8");
    const expires = new Date(Date.now() + 1_500).toISOString();
    writeFileSync(config, before.replace('name = "ada"', `name = "ada"\nexpires = "${expires}"`));
    await page.getByText("Your token is not valid").waitFor();
    await page.getByLabel("Token").fill("the token of ada");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("Your token is not valid").waitFor();
    await page.getByLabel("Token").fill(yard.token);
    await page.getByRole("button", { name: "Sign in" }).click();
    await connected(page);
    equal(await page.getByLabel(/^a\b/).first().inputValue(), "17");
    await page.getByLabel(/^b\b/).first().fill("3");
    await page.getByRole("button", { name: "Call add" }).click();
    await page.getByRole("region", { name: "Call result" }).getByText("20").first().waitFor();
    writeFileSync(config, before);
  });
  await page.close();
}

/** Opens two tabs of one window, each with its own socket and token. */
export async function tabs(tally, yard, context) {
  await tally.check("two tabs show the same state, and each keeps its own input", async () => {
    const [one, other] = [await context.newPage(), await context.newPage()];
    await visit(one, yard, "/servers/toggled");
    await visit(other, yard, "/servers/toggled");
    const state = (page, word) => page.locator(".detail .state").first().filter({ hasText: word }).waitFor();
    await Promise.all([state(one, "ready"), state(other, "ready")]);
    await one.getByRole("button", { name: "Disable", exact: true }).click();
    await Promise.all([state(one, "disabled"), state(other, "disabled")]);
    await other.getByRole("button", { name: "Enable", exact: true }).click();
    await Promise.all([state(one, "ready"), state(other, "ready")]);
    await visit(one, yard, "/tools/add");
    await visit(other, yard, "/tools/add");
    for (const [page, a, b] of [[one, "1", "2"], [other, "10", "20"]]) {
      await page.getByLabel(/^a\b/).first().fill(a);
      await page.getByLabel(/^b\b/).first().fill(b);
    }
    await Promise.all([one, other].map((page) => page.getByRole("button", { name: "Call add" }).click()));
    const result = (page) => page.getByRole("region", { name: "Call result" });
    await result(one).getByText(/"sum":3\b|^3\b|sum.*\b3\b/s).first().waitFor();
    await result(other).getByText(/30/).first().waitFor();
    await one.close();
    await other.reload();
    await connected(other);
    await other.close();
  });
}

const CALLS = 8;
const EACH = 2_500;

/** Produces 5,000 events per second with calls of a real server. */
export async function flood(tally, yard, context) {
  await tally.check("5,000 events per second from a real yard: the page stays responsive, and every event is delivered or counted as missed", async () => {
    const page = await context.newPage();
    await visit(page, yard, "/calls?session=flood");
    await connected(page);
    const counts = await listen(yard);
    const meter = await context.newCDPSession(page);
    // CPU time of the main thread, which does not depend on the load of the machine.
    await meter.send("Performance.enable", { timeDomain: "threadTicks" });
    const computed = async () => (await meter.send("Performance.getMetrics")).metrics.find((one) => one.name === "TaskDuration").value;
    const before = await computed();
    const began = Date.now();
    const done = Promise.all(Array.from({ length: CALLS }, () => rest(yard, "mcp__odd__flood", { times: EACH, every_ms: 8, at_once: 5 }, { sessionId: "flood" })));
    let over = false;
    void done.finally(() => (over = true));
    const times = [];
    while (!over) {
      times.push(await page.evaluate(async () => {
        const began = performance.now();
        await new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn)));
        return performance.now() - began;
      }));
    }
    const answers = await done;
    const seconds = (Date.now() - began) / 1_000;
    const share = ((await computed()) - before) / ((CALLS * EACH) / 5_000);
    equal(answers.map((one) => one.result ?? one), Array(CALLS).fill(`${EACH} times`), "the answers");
    await page.waitForFunction((count) => document.querySelectorAll("a.row .state").length === count && [...document.querySelectorAll("a.row .state")].every((one) => one.textContent === "succeeded"), CALLS);
    times.sort((a, b) => a - b);
    const middle = times[Math.floor(times.length / 2)];
    // Includes the start and end of each call.
    const { delivered, missed } = await counts(CALLS * (EACH + 2));
    console.log(
      `5,000 events per second of a real yard: ${((CALLS * EACH) / seconds).toFixed(0)} per second for ${seconds.toFixed(1)} s, ${delivered} delivered and ${missed} missed; ` +
        `${(share * 100).toFixed(0)} % of a core at that rate; a frame after ${middle.toFixed(0)} ms (median), ${times.at(-1).toFixed(0)} ms (max)`,
    );
    holds(delivered + missed >= CALLS * (EACH + 2), `${delivered} delivered and ${missed} missed of ${CALLS * (EACH + 2)}`);
    holds(share < 0.8, `${share} s of CPU time per second`);
    holds(middle < 250, `${times.map((time) => time.toFixed(0))} ms per frame`);
    await page.close();
  });
}

/** Subscribes to the same events as the page and counts them. */
async function listen(yard) {
  const socket = new WebSocket(`${yard.url.replace("http", "ws")}/control`, ["toolyard.control.v1"], { headers: { authorization: `Bearer ${yard.token}` } });
  let [delivered, missed] = [0, 0];
  const ready = new Promise((subscribed, failed) => {
    socket.on("error", failed);
    socket.on("message", (data) => {
      const message = JSON.parse(data);
      if (message.type === "welcome") socket.send(JSON.stringify({ id: 1, subtype: "subscribe", events: ["call_started", "call_progress", "call_ended", "lagged"] }));
      else if (message.type === "response") subscribed();
      else if (message.event === "lagged") missed += message.missed;
      else delivered++;
    });
  });
  await ready;
  return async (all) => {
    const until = Date.now() + PATIENCE;
    while (delivered + missed < all && Date.now() < until) await new Promise((done) => setTimeout(done, 20));
    socket.close();
    return { delivered, missed };
  };
}
