// What a yard does at its worst, from a mock that speaks the same protocol: sockets that drop, tokens that expire, floods of
// events; and programs, whose calls are told apart.
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

  await tally.check("a socket that drops comes back, and nothing is missed or shown twice", async () => {
    await page.goto(at(yard, "/calls"));
    await connected();
    yard.emit("call_started", { call: call("1", "running") });
    await page.locator(".call").nth(1).waitFor();
    yard.drop();
    await page.getByText("The connection to the yard is lost").waitFor();
    yard.emit("call_ended", { call: call("1", "succeeded", { durationMs: 3 }) });
    yard.emit("call_started", { call: call("2", "running") });
    await connected();
    await page.locator("a.row").nth(1).waitFor();
    equal(await names(), ["tool_2", "tool_1"], "the calls");
    equal(yard.asked.filter((order) => order.subtype === "subscribe").map((order) => order.after ?? null), [null, 101]);
    equal(await page.locator("a.row").nth(1).locator(".state").innerText(), "succeeded");
  });

  await tally.check("where the yard forgot what was missed everything is read again", async () => {
    yard.missed = true;
    yard.seq = 5;
    yard.calls.set("9", call("9", "succeeded", { durationMs: 1 }));
    yard.drop();
    await page.getByText("The connection to the yard is lost").waitFor();
    await connected();
    await page.waitForFunction(() => document.querySelectorAll("a.row").length === 1);
    equal(await names(), ["tool_9"]);
    yard.emit("call_started", { call: call("10", "running") });
    await page.locator("a.row").nth(1).waitFor();
    yard.missed = false;
  });

  await tally.check("a yard that closes the socket for its token is given another one", async () => {
    await page.goto(at(yard, "/tools/mcp__odd__stubborn"));
    await page.getByLabel(/^text/).first().fill("aaaa");
    yard.token = "another";
    yard.drop(4401);
    await page.getByText("The token is not accepted any more").waitFor();
    await page.getByLabel("Token").fill("another");
    await page.getByRole("button", { name: "Open the yard" }).click();
    await connected();
    equal(await page.getByLabel(/^text/).first().inputValue(), "aaaa");
  });

  await tally.check("a call whose socket drops says that its end is not known", async () => {
    yard.holding = true;
    await page.goto(at(yard, "/tools/mcp__odd__chatty"));
    await page.getByRole("button", { name: "Call chatty" }).click();
    await page.getByText(/word 5/).first().waitFor();
    yard.drop();
    await page.getByText("CONNECTION_LOST").waitFor();
    yard.holding = false;
    await connected();
  });

  await tally.check("a thousand pieces of one call are shown", async () => {
    await page.getByRole("button", { name: "Call chatty" }).click();
    await page.getByText("all said").waitFor();
  });

  await tally.check("numbers are as the server sent them", async () => {
    await page.goto(at(yard, "/tools/mcp__odd__precise"));
    await page.getByRole("button", { name: "Call precise" }).click();
    await page.getByRole("button", { name: "Structured" }).click();
    const shown = page.getByRole("group", { name: "Result" });
    for (const number of ["12345678901234567890", "1e400", "1.0", "0.10"]) await shown.getByText(number, { exact: true }).waitFor();
    await page.getByRole("button", { name: "Content", exact: true }).click();
    await page.getByRole("group", { name: "Content: text" }).getByText("0.10", { exact: true }).waitFor();
  });

  await tally.check("a schema that cannot be compiled is told with its tool", async () => {
    await page.goto(at(yard, "/tools/mcp__odd__unusable"));
    await page.getByText('The input schema cannot be used, so arguments are not checked: /properties/text: "(" is not a pattern').waitFor();
    await page.getByText("The output schema cannot be used, so results are not checked: it is not a schema").waitFor();
    await page.goto(at(yard, "/tools/mcp__odd__bare"));
    await page.getByText("No schema worth the name.").first().waitFor();
    equal(await page.getByText("cannot be used").count(), 0, "problems of a tool that has none");
  });

  await tally.check("5,000 events a second leave the page time for everything else, and no more are shown than can be held", async () => {
    await page.goto(at(yard, "/calls"));
    await connected();
    const meter = await context.newCDPSession(page);
    // The time that the page's own thread computed: what else the machine does is not in it.
    await meter.send("Performance.enable", { timeDomain: "threadTicks" });
    const computed = async () => (await meter.send("Performance.getMetrics")).metrics.find((one) => one.name === "TaskDuration").value;
    let going = true;
    let sent = 0;
    const flood = (async () => {
      const began = Date.now();
      // On a machine that has no time for the page the flood ends all the same.
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
    console.log(`5,000 events a second: ${(share * 100).toFixed(0)} % of a core; a picture after ${times[10].toFixed(0)} ms in the middle, ${times.at(-1).toFixed(0)} ms at most; ${sent} events`);
    // About a third of a core where nobody else uses the machine.
    holds(share < 0.8, `${share} s of every second`);
    holds(times[10] < 1_000, `${times.map((time) => time.toFixed(0))} ms for a picture`);
    await page.waitForFunction((last) => document.querySelector(".call span[title]")?.textContent?.includes(`tool_f${last}`), sent - 2, { timeout: 60_000 }).catch(async () => { throw new Error(`the latest are ${(await names()).slice(0, 3)}, not ${sent - 2}`); });
    holds((await page.locator("a.row").count()) < 100, "more rows than can be seen");
    holds((await page.getByText(/^2,000 calls/).count()) === 1, await page.locator(".found").innerText());
  });

  await tally.check("two tabs are two sockets, and both hear everything", async () => {
    const other = await context.newPage();
    await other.goto(at(yard, "/calls"));
    await other.locator("a.row").first().waitFor();
    yard.emit("call_started", { call: call("both", "running") });
    await Promise.all([page, other].map((one) => one.getByText("tool_both").waitFor()));
    equal(yard.sockets.size, 2);
    await other.close();
  });

  await tally.check("a program is opened, run, and its calls are on the timeline", async () => {
    await page.goto(at(yard, "/programs"));
    const code = 'print("<b>hi</b>")';
    await page.locator("input[type=file]").setInputFiles({ name: "p.py", mimeType: "text/x-python", buffer: Buffer.from(code) });
    await page.waitForFunction((text) => document.querySelector("textarea")?.value === text, code);
    await page.getByRole("button", { name: "Run" }).click();
    holds((await page.getByRole("dialog").innerText()).includes("<b>hi</b>"), "the code is not shown before it is sent");
    await page.getByRole("button", { name: "Send", exact: true }).click();
    await page.getByRole("region", { name: "Result of the call" }).getByText(/hi/).first().waitFor();
    const order = yard.asked.findLast((one) => one.subtype === "mcp_call");
    equal(order.arguments, { code });
    yard.emit("call_ended", { call: call("of-program", "succeeded", { durationMs: 2, sessionId: order.session_id }) });
    yard.emit("call_ended", { call: call("of-others", "succeeded", { durationMs: 2 }) });
    const made = page.getByRole("region", { name: "Calls of the program" });
    await made.getByText("tool_of-program").waitFor();
    equal(await made.getByText("tool_of-others").count(), 0, "calls of others");
  });

  await tally.check("the theme is chosen and kept", async () => {
    const theme = () => page.evaluate(() => document.documentElement.dataset.theme);
    await page.getByRole("button", { name: /^Theme/ }).click();
    equal(await theme(), "light");
    await page.getByRole("button", { name: /^Theme/ }).click();
    equal(await theme(), "dark");
    await page.reload();
    equal(await theme(), "dark");
  });

  await tally.check("nothing went wrong unseen in all this", async () => equal(wrong, []));
  await context.close();
  yard.stop();
}
