// Failures that a mock yard simulates: dropped sockets, expired tokens, floods of events. Also tests programs, whose calls
// must be told apart from others.
import { at, equal, holds, visitor } from "./browser.mjs";
import { later, oddTools, startMock, unusable } from "./mock.mjs";

const MOST = 60_000;
const call = (id, status, more = {}) => ({ id, thing: "tool", subject: `tool_${id}`, serverName: "odd", principal: "owner", front: "mcp", startedAt: new Date().toISOString(), status, ...more });

export async function storms(tally, browser, assets) {
  const program = { ...oddTools()[4], name: "execute_program", fullName: "execute_program", serverName: "programs", inputSchema: { type: "object", properties: { code: { type: "string" } }, required: ["code"] }, annotations: { readOnlyHint: false } };
  const yard = await startMock({ assets, tools: [...oddTools(), unusable(), program] });
  const { context, wrong } = await visitor(browser, yard.url);
  const page = await context.newPage();
  const connected = () => page.locator(".top .state.good").waitFor({ timeout: 15_000 });
  const names = () => page.locator(".call span[title]").allInnerTexts();

  await tally.check("after a dropped socket, no event is missing or shown twice", async () => {
    await page.goto(at(yard, "/calls"));
    await connected();
    yard.emit("call_started", { call: call("1", "running") });
    await page.locator(".call").nth(1).waitFor();
    yard.drop();
    await page.getByText("Connection to the yard lost").waitFor();
    yard.emit("call_ended", { call: call("1", "succeeded", { durationMs: 3 }) });
    yard.emit("call_started", { call: call("2", "running") });
    await connected();
    await page.locator("a.row").nth(1).waitFor();
    equal(await names(), ["tool_2", "tool_1"], "the calls");
    equal(yard.asked.filter((order) => order.subtype === "subscribe").map((order) => order.after ?? null), [null, 101]);
    equal(await page.locator("a.row").nth(1).locator(".state").innerText(), "succeeded");
  });

  await tally.check("everything is reloaded if the yard no longer has the missed events", async () => {
    yard.missed = true;
    yard.seq = 5;
    yard.calls.set("9", call("9", "succeeded", { durationMs: 1 }));
    yard.drop();
    await page.getByText("Connection to the yard lost").waitFor();
    await connected();
    await page.waitForFunction(() => document.querySelectorAll("a.row").length === 1);
    equal(await names(), ["tool_9"]);
    yard.emit("call_started", { call: call("10", "running") });
    await page.locator("a.row").nth(1).waitFor();
    yard.missed = false;
  });

  await tally.check("a socket closed with 4401 shows the sign-in form", async () => {
    await page.goto(at(yard, "/tools/mcp__odd__stubborn"));
    await page.getByLabel(/^text/).first().fill("aaaa");
    yard.token = "another";
    yard.drop(4401);
    await page.getByText("Your token is not valid").waitFor();
    await page.getByLabel("Token").fill("another");
    await page.getByRole("button", { name: "Sign in" }).click();
    await connected();
    equal(await page.getByLabel(/^text/).first().inputValue(), "aaaa");
  });

  await tally.check("a call whose socket drops reports an unknown outcome", async () => {
    yard.holding = true;
    await page.goto(at(yard, "/tools/mcp__odd__chatty"));
    await page.getByRole("button", { name: "Call chatty" }).click();
    await page.getByText(/word 5/).first().waitFor();
    yard.drop();
    await page.getByText("CONNECTION_LOST").waitFor();
    yard.holding = false;
    await connected();
  });

  await tally.check("a thousand chunks of one call are shown", async () => {
    await page.getByRole("button", { name: "Call chatty" }).click();
    await page.getByText("done talking").waitFor();
  });

  await tally.check("numbers keep their original digits", async () => {
    await page.goto(at(yard, "/tools/mcp__odd__precise"));
    await page.getByRole("button", { name: "Call precise" }).click();
    await page.getByRole("button", { name: "Structured" }).click();
    const shown = page.getByRole("group", { name: "Result" });
    for (const number of ["12345678901234567890", "1e400", "1.0", "0.10"]) await shown.getByText(number, { exact: true }).waitFor();
    await page.getByRole("button", { name: "Content", exact: true }).click();
    await page.getByRole("group", { name: "Content: text" }).getByText("0.10", { exact: true }).waitFor();
  });

  await tally.check("an unusable schema is reported with its tool", async () => {
    await page.goto(at(yard, "/tools/mcp__odd__unusable"));
    await page.getByText('The input schema cannot be used, so arguments are not validated: /properties/text: "(" is not a pattern').waitFor();
    await page.getByText("The output schema cannot be used, so results are not validated: it is not a schema").waitFor();
    await page.goto(at(yard, "/tools/mcp__odd__bare"));
    await page.getByText("A minimal schema.").first().waitFor();
    equal(await page.getByText("cannot be used").count(), 0, "schema problems of a valid tool");
  });

  await tally.check("5,000 events per second: the page stays responsive, and the list is bounded", async () => {
    await page.goto(at(yard, "/calls"));
    await connected();
    const meter = await context.newCDPSession(page);
    // CPU time of the main thread, which does not depend on the load of the machine.
    await meter.send("Performance.enable", { timeDomain: "threadTicks" });
    const computed = async () => (await meter.send("Performance.getMetrics")).metrics.find((one) => one.name === "TaskDuration").value;
    let going = true;
    let sent = 0;
    const flood = (async () => {
      const began = Date.now();
      // On a slow machine, the flood still ends.
      while (going && sent < MOST) {
        for (; sent < Math.min(MOST, (Date.now() - began) * 5); sent += 2) {
          yard.emit("call_started", { call: call(`f${sent}`, "running") });
          yard.emit("call_ended", { call: call(`f${sent}`, "succeeded", { durationMs: 2 }) });
        }
        yard.journal.length = 0;
        await later(5);
      }
    })();
    await later(1_000);
    const [before, began] = [await computed(), sent];
    const times = await page.evaluate(async () => {
      const times = [];
      for (let round = 0; round < 20; round++) {
        const began = performance.now();
        await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
        times.push(performance.now() - began);
        await new Promise((done) => setTimeout(done, 50));
      }
      return times.sort((a, b) => a - b);
    });
    const share = ((await computed()) - before) / ((sent - began) / 5_000);
    going = false;
    await flood;
    console.log(`5,000 events per second: ${(share * 100).toFixed(0)} % of a core; a frame after ${times[10].toFixed(0)} ms (median), ${times.at(-1).toFixed(0)} ms (max); ${sent} events`);
    // About a third of a core on an idle machine.
    holds(share < 0.8, `${share} s of CPU time per second`);
    holds(times[10] < 1_000, `${times.map((time) => time.toFixed(0))} ms per frame`);
    await page.waitForFunction((last) => document.querySelector(".call span[title]")?.textContent?.includes(`tool_f${last}`), sent - 2, { timeout: 60_000 }).catch(async () => { throw new Error(`the latest are ${(await names()).slice(0, 3)}, not ${sent - 2}`); });
    holds((await page.locator("a.row").count()) < 100, "more rows than can be seen");
    holds((await page.getByText(/^2,000 calls/).count()) === 1, await page.locator(".found").innerText());
  });

  await tally.check("two tabs have two sockets, and both receive all events", async () => {
    const other = await context.newPage();
    await other.goto(at(yard, "/calls"));
    await other.locator("a.row").first().waitFor();
    yard.emit("call_started", { call: call("both", "running") });
    await Promise.all([page, other].map((one) => one.getByText("tool_both").waitFor()));
    equal(yard.sockets.size, 2);
    await other.close();
  });

  await tally.check("a program can be opened and run, and its calls are on the timeline", async () => {
    await page.goto(at(yard, "/programs"));
    const code = 'print("<b>hi</b>")';
    await page.locator("input[type=file]").setInputFiles({ name: "p.py", mimeType: "text/x-python", buffer: Buffer.from(code) });
    await page.waitForFunction((text) => document.querySelector("textarea")?.value === text, code);
    await page.getByRole("button", { name: "Run" }).click();
    holds((await page.getByRole("dialog").innerText()).includes("<b>hi</b>"), "the dialog does not show the code");
    await page.getByRole("button", { name: "Call", exact: true }).click();
    await page.getByRole("region", { name: "Call result" }).getByText(/hi/).first().waitFor();
    const order = yard.asked.findLast((one) => one.subtype === "mcp_call");
    equal(order.arguments, { code });
    yard.emit("call_ended", { call: call("of-program", "succeeded", { durationMs: 2, sessionId: order.session_id }) });
    yard.emit("call_ended", { call: call("of-others", "succeeded", { durationMs: 2 }) });
    const made = page.getByRole("region", { name: "Calls by the program" });
    await made.getByText("tool_of-program").waitFor();
    equal(await made.getByText("tool_of-others").count(), 0, "calls of other clients");
  });

  await tally.check("the theme can be changed and is stored", async () => {
    const theme = () => page.evaluate(() => document.documentElement.dataset.theme);
    await page.getByRole("button", { name: /^Theme/ }).click();
    equal(await theme(), "light");
    await page.getByRole("button", { name: /^Theme/ }).click();
    equal(await theme(), "dark");
    await page.reload();
    equal(await theme(), "dark");
  });

  await tally.check("no hidden errors with the mock yard", async () => equal(wrong, []));
  await context.close();
  yard.stop();
}
