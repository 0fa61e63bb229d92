// The other views of the page with the real binary: servers, resources, prompts, calls, and keyboard navigation.
import { equal, holds, rest, visit } from "./browser.mjs";

export async function lookAround(tally, yard, context) {
  const page = await context.newPage();
  const open = (place) => visit(page, yard, place);
  const button = (name) => page.getByRole("button", { name, exact: true });

  await tally.check("a server shows its state, transport, era, version, counts and authorization", async () => {
    await open("/servers/everything");
    await page.getByRole("heading", { name: "everything" }).waitFor();
    const text = await page.locator(".detail").innerText();
    for (const word of ["ready", "Transport", "stdio", "Era", "legacy, protocol 2025", "Authorization", "Uptime", "tools", "resources", "prompts"]) holds(text.includes(word), `${word} is not in ${text}`);
    holds(/ready .*\d+\.\d+\.\d+/.test(text) && /Uptime\s+\d+ (s|min)/.test(text), `no version or uptime in ${text}`);
  });

  await tally.check("tools can be filtered by server, tag and permission", async () => {
    await open("/tools");
    const found = (count) => page.getByText(new RegExp(`^${count} of \\d+ tools$`)).waitFor();
    const narrow = (what, value) => page.getByLabel(`Filter by ${what}`).selectOption(value);
    await narrow("server", "demo");
    await found(8);
    await narrow("tag", "kelvin");
    await found(1);
    await page.locator("a.row", { hasText: "Convert temperature" }).waitFor();
    await narrow("tag", "");
    await narrow("permission", "admin");
    await page.locator("a.row", { hasText: "Admin report" }).waitFor();
    await found(1);
    await narrow("permission", "");
    await narrow("server", "");
    await page.locator("[data-search]").fill("celsius nothing has this word");
    await page.getByText("No matching tools.").waitFor();
    await button("Show all").click();
    await page.locator("a.row").nth(5).waitFor();
  });

  await tally.check("Show all right after typing clears the search", async () => {
    await open("/tools");
    await page.locator("a.row").nth(5).waitFor();
    // Types and clicks before the search is written to the URL.
    await page.evaluate(async () => {
      const search = document.querySelector("[data-search]");
      search.value = "nothing has this word";
      search.dispatchEvent(new Event("input", { bubbles: true }));
      await new Promise((seen) => requestAnimationFrame(() => requestAnimationFrame(seen)));
      [...document.querySelectorAll("button")].find((one) => one.textContent === "Show all").click();
    });
    await page.waitForTimeout(600);
    await page.locator("a.row").nth(5).waitFor();
    holds(!page.url().includes("q="), `the URL is ${page.url()}`);
  });

  await tally.check("a failed server shows the reason and its standard error", async () => {
    await open("/servers/broken");
    await page.locator(".detail .problem").first().waitFor();
    await open("/servers/broken/stderr");
    await page.getByText("this server always fails").first().waitFor();
  });

  await tally.check("a server can be disabled, enabled and reconnected", async () => {
    await open("/servers/toggled");
    const state = (word) => page.locator(".detail .state").first().filter({ hasText: word }).waitFor();
    await state("ready");
    await button("Disable").click();
    await state("disabled");
    await button("Enable").click();
    await state("ready");
    const up = (pattern) => page.locator(".detail dl.facts dd").first().filter({ hasText: pattern }).waitFor();
    await up(/[1-9]/);
    await button("Reconnect").click();
    await up(/^0 s/);
    await state("ready");
  });

  await tally.check("the transcript shows both directions", async () => {
    await open("/servers/everything/transcript");
    // Opening the view starts the recording. Earlier messages are not recorded.
    await page.getByText(/\d+ messages?, newest first/).waitFor();
    await rest(yard, "mcp__everything__echo", { message: "to be seen" });
    await page.locator(".wire", { hasText: "to be seen" }).nth(1).waitFor();
    const ways = await page.locator(".wire", { hasText: "to be seen" }).locator(".unseen").allInnerTexts();
    equal(ways.filter((one) => /server/.test(one)), ["from the server", "to the server"]);
  });

  await tally.check("a resource can be read, previewed and downloaded", async () => {
    await open("/resources");
    await page.locator("a.row").filter({ hasText: "demo://about" }).click();
    await button("Read").click();
    await page.getByRole("region", { name: "Preview" }).waitFor();
    const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: /Download/ }).click()]);
    equal(file.suggestedFilename(), "about");
  });

  await tally.check("a template can be filled in", async () => {
    await open("/resources");
    await page.locator("a.row").filter({ hasText: "demo://squares" }).click();
    await page.locator("input[id^=hole-]").fill("12");
    await button("Read").click();
    await page.getByText("144").first().waitFor();
  });

  await tally.check("a prompt can be filled in, with completions, and shows its messages", async () => {
    await open("/prompts/mcp__everything__args-prompt");
    await button("Get prompt").click();
    await page.getByText("This field is required.").waitFor();
    await page.getByLabel(/^city/).fill("Paris");
    await button("Get prompt").click();
    await page.getByRole("region", { name: "Messages" }).getByText(/Paris/).waitFor();
    await open("/prompts/mcp__everything__completable-prompt");
    await page.getByLabel(/^department/).fill("E");
    await page.waitForFunction(() => document.querySelectorAll("datalist option").length > 0);
  });

  await tally.check("calls of other clients appear live, and can be filtered, opened and repeated", async () => {
    await open("/calls");
    await page.locator(".found", { hasText: "running" }).waitFor();
    const slow = rest(yard, "count_down", { from: 20 });
    await page.locator(".call .bar.running").first().waitFor();
    await slow;
    await page.getByLabel("Filter by state").selectOption("succeeded");
    await page.getByLabel("Filter calls").fill("count_down");
    await page.locator("a.row").first().click();
    await page.getByRole("heading", { name: "count_down" }).waitFor();
    const text = await page.locator(".detail").innerText();
    holds(/succeeded/.test(text) && /rest/i.test(text), text);
    await page.getByRole("link", { name: "Repeat" }).click();
    await page.getByRole("heading", { name: "Try it" }).waitFor();
  });

  await tally.check("a call from the page can be repeated with its arguments", async () => {
    await open(`/tools/add?args=${encodeURIComponent('{"a":3,"b":4}')}`);
    await button("Call add").click();
    await page.getByRole("link", { name: "Show in calls" }).click();
    const saving = page.waitForEvent("download");
    await page.getByRole("link", { name: "Save as test" }).click();
    const file = await (await saving).createReadStream();
    const saved = JSON.parse(Buffer.concat(await file.toArray()).toString());
    equal(JSON.stringify(saved.tests[0].arguments), '{"a":3,"b":4}');
    equal(saved.tests[0].expect.structured.equals.sum, 7);
    await page.getByRole("link", { name: "Repeat" }).click();
    await page.getByLabel(/^a\b/).first().waitFor();
    equal(await page.getByLabel(/^b\b/).first().inputValue(), "4");
  });

  await tally.check("a program runs in the yard, and its calls are shown with its output", async () => {
    await open("/programs");
    await page.getByLabel("Program code").fill("answer = await add(a=40, b=2)\nprint('the sum is', answer['sum'])\n");
    await button("Run").click();
    await page.getByRole("dialog").getByRole("button", { name: "Call", exact: true }).click();
    await page.getByRole("region", { name: "Call result" }).getByText(/the sum is 42/).first().waitFor();
    await page.getByRole("region", { name: "Calls by the program" }).locator(".call", { hasText: "add" }).waitFor();
  });

  await tally.check("unknown names are reported", async () => {
    for (const [place, words] of [["/tools/nope", "No tool named"], ["/servers/nope", "No server named"], ["/prompts/nope", "No prompt named"], ["/calls/nope", "No call with the ID"]]) {
      await open(place);
      await page.getByText(words).waitFor();
    }
  });
  await page.close();
}

/** Uses a tool without a mouse. */
export async function keysOnly(tally, yard, context) {
  const page = await context.newPage();
  const key = (name) => page.keyboard.press(name);
  await tally.check("a tool can be found, filled in, called and closed with the keyboard only", async () => {
    await visit(page, yard, "/servers");
    await page.locator("a.row").first().waitFor();
    await key("Control+k");
    await page.getByLabel("Go to anything").waitFor();
    await page.keyboard.type("tools");
    await key("Enter");
    await page.waitForFunction(() => location.hash.startsWith("#/tools"));
    await key("/");
    await page.waitForFunction(() => document.activeElement?.matches("[data-search]"));
    await page.keyboard.type("convert_temp");
    await page.waitForFunction(() => document.querySelectorAll("a.row").length === 1);
    await key("ArrowDown");
    await key("Enter");
    await page.getByRole("heading", { name: "Try it" }).waitFor();
    await key("Escape");
    await page.waitForFunction(() => !location.hash.includes("convert_temperature"));
    await key("Enter");
    await page.getByRole("heading", { name: "Try it" }).waitFor();
    for (let step = 0; step < 60; step++) {
      if (await page.evaluate(() => document.activeElement?.id.startsWith("call-"))) break;
      await key("Tab");
    }
    for (const [field, value] of [["from", "celsius"], ["to", "fahrenheit"], ["value", "100"]]) {
      equal(await page.evaluate(() => document.activeElement?.id.replace(/.*-47/, "")), field, "the field with the focus");
      await page.keyboard.type(value);
      await key("Tab");
    }
    await key("Control+Enter");
    await page.getByRole("region", { name: "Call result" }).getByText("212").first().waitFor();
  });
  await page.close();
}
