// A yard with several replicas, as a mock yard describes it: its replicas, what is wrong with them, and their calls.
import { at, equal, holds, visitor } from "./browser.mjs";
import { HOSTILE, startMock } from "./mock.mjs";

const replica = (name, more = {}) => ({ id: `id-${name}`, name, url: `http://${name}.internal`, version: "0.1.0", state: "ready", differences: [], self: name === "a", connected: true, ...more });
const call = (id, name) => ({ id, thing: "tool", subject: `tool_${id}`, serverName: "odd", principal: "owner", front: "mcp", startedAt: new Date().toISOString(), status: "running", ...(name ? { replica: name } : {}) });

export async function clusters(tally, browser, assets) {
  const fine = [replica("a"), replica("b"), replica("c")];
  const servers = [{ name: "b", state: "ready" }, { name: "c", state: "failed", reason: `it exited ${HOSTILE}` }];
  const yard = await startMock({ assets, cluster: { store: "available", replicas: fine, servers } });
  const { context, wrong } = await visitor(browser, yard.url);
  const page = await context.newPage();
  const connected = () => page.locator(".top .state.good").waitFor({ timeout: 15_000 });
  const banners = () => page.locator(".banner").allInnerTexts();

  await tally.check("the replicas of a yard are listed", async () => {
    await page.goto(at(yard, "/servers"));
    await connected();
    await page.getByRole("link", { name: "3 replicas" }).waitFor();
    const rows = await page.locator(".replicas tbody tr").allInnerTexts();
    equal(rows.map((row) => row.split(/\s+/).slice(0, 3)), [["a", "ready", "0.1.0"], ["b", "ready", "0.1.0"], ["c", "ready", "0.1.0"]]);
    equal(await banners(), []);
  });

  await tally.check("the state of a server at every replica is shown", async () => {
    await page.getByText("differs at 1 replica").first().waitFor();
    await page.goto(at(yard, "/servers/odd"));
    const rows = page.getByRole("table", { name: "State at every replica" }).locator("tbody tr");
    await rows.nth(2).waitFor();
    const texts = await rows.allInnerTexts();
    equal(texts.map((row) => row.split(/\s+/).slice(0, 2)), [["a", "ready"], ["b", "ready"], ["c", "failed"]]);
    holds(texts[2].includes("it exited <img"), texts[2]);
  });

  await tally.check("a store that is lost and replicas that differ are announced until they recover", async () => {
    const odd = [replica("a"), replica("b", { differences: ["version", "configuration"] }), replica("c", { connected: false, state: "draining" })];
    yard.emit("replicas", { store: "unavailable", replicas: odd });
    await page.getByText("The store that the replicas share is not available").waitFor();
    const text = (await banners()).join(" ");
    for (const words of ["Replica b: different version, configuration.", "Replica c: not connected"]) holds(text.includes(words), `${words} is not in ${text}`);
    yard.emit("replicas", { store: "available", replicas: fine });
    await page.waitForFunction(() => document.querySelectorAll(".banner").length === 0);
  });

  await tally.check("the replica of a call is shown and can be filtered by", async () => {
    await page.goto(at(yard, "/calls"));
    await connected();
    yard.emit("call_started", { call: call("1", "a") });
    yard.emit("call_started", { call: call("2", "b") });
    await page.getByText("mcp owner at b").waitFor();
    await page.getByLabel("Filter by replica").selectOption("b");
    await page.waitForFunction(() => document.querySelectorAll("a.row").length === 1);
    await page.locator("a.row").first().click();
    equal(await page.locator("dl.facts dt", { hasText: "Replica" }).locator("xpath=following-sibling::dd[1]").innerText(), "b");
  });

  await tally.check("a yard with one process shows nothing about replicas", async () => {
    const single = await startMock({ assets });
    const other = await visitor(browser, single.url);
    const alone = await other.context.newPage();
    await alone.goto(at(single, "/calls"));
    await alone.locator(".top .state.good").waitFor({ timeout: 15_000 });
    single.emit("call_started", { call: call("1") });
    await alone.locator("a.row").first().waitFor();
    holds(!/replica/i.test(await alone.locator("body").innerText()), "the page mentions replicas");
    equal(single.asked.filter((order) => JSON.stringify(order).includes("replicas")), []);
    equal(other.wrong, []);
    await other.context.close();
    single.stop();
  });

  await tally.check("no hidden errors while showing several replicas", async () => equal(wrong, []));
  await context.close();
  yard.stop();
}
