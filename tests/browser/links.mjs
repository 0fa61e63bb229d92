// URLs: every view has one that works in a new tab and after a reload. Also tests browser history and the command palette.
import { connected, copied, equal, holds, rest, visit } from "./browser.mjs";

export async function deepLinks(tally, yard, context) {
  const failed = await rest(yard, "fail", { message: "for its address" }, { sessionId: "linked" });
  const id = failed.metadata?.executionId ?? failed.error?.executionId;
  const places = [
    ["/tools", (page) => page.getByText(/^\d+ of \d+ tools$/)],
    ["/tools?q=temperature&server=demo&tag=celsius", (page) => page.getByText(/^1 of \d+ tools$/)],
    ["/tools?permission=admin", (page) => page.locator("a.row", { hasText: "Admin report" })],
    ["/tools/mcp__everything__echo", (page) => page.getByRole("button", { name: "Call echo" })],
    ["/tools/echo", (page) => page.getByRole("button", { name: "Call echo" })],
    ["/tools/mcp__everything__get-structured-content/output", (page) => page.getByRole("heading", { name: "Schema" })],
    ["/tools/mcp__everything__echo/definition", (page) => page.getByText("The definition as advertised by the server.")],
    [`/tools/add?args=${encodeURIComponent('{"a":5,"b":6}')}`, (page) => page.getByLabel(/^b\b/), "6"],
    ["/servers", (page) => page.locator("a.row", { hasText: "filesystem" })],
    ["/servers/everything", (page) => page.getByRole("heading", { name: "everything" })],
    ["/servers/spare/stderr", (page) => page.getByLabel("Standard error")],
    ["/servers/spare/transcript", (page) => page.getByText("newest first")],
    ["/resources?server=demo", (page) => page.locator("a.row", { hasText: "demo://about" })],
    [`/resources/demo/${encodeURIComponent("demo://about")}`, (page) => page.getByRole("button", { name: "Read", exact: true })],
    [`/resources/demo/${encodeURIComponent("demo://squares/{n}")}?args=${encodeURIComponent('{"n":"9"}')}`, (page) => page.getByText("demo://squares/9")],
    ["/prompts?server=everything", (page) => page.locator("a.row", { hasText: "Arguments Prompt" })],
    [`/prompts/mcp__everything__args-prompt?args=${encodeURIComponent('{"city":"Oslo"}')}`, (page) => page.getByLabel(/^city/), "Oslo"],
    ["/calls?status=failed&session=linked", (page) => page.locator("a.row", { hasText: "fail" })],
    [`/calls/${id}`, (page) => page.getByRole("heading", { name: "fail" })],
    [`/programs?code=${encodeURIComponent("print(6 * 7)")}`, (page) => page.getByLabel("Program code"), "print(6 * 7)"],
  ];
  await tally.check(`${places.length} URLs open their view, also after a reload, with the right title`, async () => {
    const page = await context.newPage();
    await visit(page, yard, "/tools");
    await connected(page);
    for (const [place, there, value] of places) {
      // Another document in between, so that only the URL and the token of the tab remain.
      await page.goto("about:blank");
      await page.goto(`${yard.url}/#${place}`);
      await there(page).first().waitFor().catch((error) => { throw new Error(`${place}: ${error}`); });
      if (value) equal(await there(page).first().inputValue(), value, place);
      const title = await page.title();
      holds(title.endsWith("· Toolyard") && title.toLowerCase().includes(place.split(/[/?]/)[1].toLowerCase()), `${place} is titled ${title}`);
    }
    await page.reload();
    equal(await page.getByLabel("Program code").inputValue(), "print(6 * 7)");
    await page.close();
  });

  await tally.check("form values can be copied as a link, and the link restores them", async () => {
    const page = await context.newPage();
    for (const [place, button, field, value] of [
      ["/tools/add", "Copy link", /^a\b/, "7"],
      ["/prompts/mcp__everything__args-prompt", "Copy link", /^city/, "Köln & Bonn"],
      ["/programs", "Copy link", "Program code", "print('a=b&c')\n"],
    ]) {
      await visit(page, yard, place);
      await page.getByLabel(field).first().fill(value);
      const link = await copied(page, button);
      holds(link.startsWith(`${yard.url}/#/`) && !link.includes(yard.token), link);
      await page.goto("about:blank");
      await page.goto(link);
      await page.getByLabel(field).first().waitFor();
      equal(await page.getByLabel(field).first().inputValue(), value, place);
    }
    await page.close();
  });

  await tally.check("the back and forward buttons switch between views", async () => {
    const page = await context.newPage();
    const hash = (text) => page.waitForFunction((wanted) => location.hash === wanted, text);
    await visit(page, yard, "/servers");
    await connected(page);
    await page.getByRole("link", { name: /^Tools/ }).click();
    await hash("#/tools");
    await page.locator("a.row", { hasText: "Convert temperature" }).click();
    await hash("#/tools/convert_temperature");
    await page.goBack();
    await hash("#/tools");
    await page.goBack();
    await hash("#/servers");
    await page.goForward();
    await page.goForward();
    await page.getByRole("heading", { name: "Try it" }).waitFor();
    await page.close();
  });

  await tally.check("the command palette opens views, servers, tools, resources and prompts, and changes the theme", async () => {
    const page = await context.newPage();
    await visit(page, yard, "/tools");
    await connected(page);
    for (const [words, kind, hash] of [
      ["resources", "view", "#/resources"],
      ["filesystem", "server", "#/servers/filesystem"],
      ["echo tool", "everything", "#/tools/mcp__everything__echo"],
      ["demo://about", "resource", "#/resources/demo/demo%3A%2F%2Fabout"],
      ["completable-prompt", "prompt", "#/prompts/mcp__everything__completable-prompt"],
    ]) {
      await page.keyboard.press("Control+k");
      await page.getByLabel("Go to anything").fill(words);
      await page.getByRole("option", { selected: true }).filter({ hasText: kind }).waitFor();
      await page.keyboard.press("Enter");
      await page.waitForFunction((wanted) => location.hash === wanted, hash).catch(() => { throw new Error(`${words} leads to ${page.url()}`); });
    }
    // Both keys in one task: the browser reports the closed dialog only after it is open again.
    await page.keyboard.press("Control+k");
    await page.getByLabel("Go to anything").fill("prompts");
    await page.getByRole("option", { selected: true }).filter({ hasText: "view" }).waitFor();
    await page.evaluate(() => {
      const press = (key, more) => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more }));
      press("Enter");
      press("k", { ctrlKey: true });
    });
    await page.waitForFunction(() => location.hash === "#/prompts");
    await page.getByLabel("Go to anything").fill("dark th");
    await page.getByRole("option", { selected: true }).filter({ hasText: "Dark theme" }).waitFor();
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.documentElement.dataset.theme === "dark");
    await page.keyboard.press("Control+k");
    await page.getByLabel("Go to anything").fill("no such thing at all");
    await page.waitForFunction(() => document.querySelectorAll("dialog[open] [role=option]").length === 0);
    await page.keyboard.press("Enter");
    await page.keyboard.press("Escape");
    await page.waitForFunction(() => !document.querySelector("dialog[open]"));
    await page.close();
  });
}
