// Compares the accessibility tree of each view with its snapshot: roles, names and states, without values that change in
// every run. SNAPSHOTS=write updates the snapshots; review them before you commit.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { connected, holds, rest, visit, visitor } from "./browser.mjs";

const { SNAPSHOTS_AT, SNAPSHOTS } = process.env;
const VARIABLE = [
  [/\d+\/\d+\/\d{4}, \d+:\d+:\d+ [AP]M/g, "WHEN"],
  [/\b\d\d:\d\d:\d\d\.\d{3}\b/g, "CLOCK"],
  [/(< )?\b\d+(\.\d+)? (ms|s|min|h|d)\b( \d+ (s|min|h)\b)?/g, "TIME"],
  [/\bduration: \d+/g, "duration: N"],
  [/exec-[\w-]+|\b[0-9a-f]{8}-[0-9a-f-]{27}\b/g, "ID"],
  [/\b\d{4}-\d\d-\d\dT[\d:.]+Z/g, "WHEN"],
  [/127\.0\.0\.1:\d+/g, "HOST"],
  [/\/[\w/.-]*toolyard-browser-\w+/g, "HOME"],
  // The state of a failed server depends on the time. Some reasons turn the line into a quoted one.
  [/'?option "broken .*"'?/g, 'option "broken STATE"'],
  [/- link "(Servers|Calls)( \d+)?"/g, '- link "$1 N"'],
];

/** Returns the accessibility tree of the page as text. */
async function spoken(page) {
  const text = await page.locator("body").ariaSnapshot();
  return `${VARIABLE.reduce((sofar, [pattern, word]) => sofar.replace(pattern, word), text)}\n`;
}

async function compare(name, text) {
  const path = join(SNAPSHOTS_AT, `${name}.yml`);
  if (SNAPSHOTS === "write") {
    mkdirSync(SNAPSHOTS_AT, { recursive: true });
    writeFileSync(path, text);
  }
  const [had, has] = [readFileSync(path, "utf8"), text].map((one) => one.split("\n"));
  const line = has.findIndex((one, index) => one !== had[index]);
  holds(had.length === has.length && line < 0, `line ${line + 1} is ${has[line]}, not ${had[line]}; SNAPSHOTS=write updates it`);
}

/** Checks every view. Must run before other parts change the yard. */
export async function speak(tally, yard, browser) {
  const { context } = await visitor(browser, yard.url, { colorScheme: "light" });
  const page = await context.newPage();
  const session = { sessionId: "spoken" };
  const calls = [await rest(yard, "add", { a: 1, b: 2 }, session), await rest(yard, "fail", { message: "out of luck" }, session)];
  const heading = (name) => page.getByRole("heading", { name }).first().waitFor();
  const row = () => page.locator("a.row").first().waitFor();
  const views = {
    gate: [],
    tools: ["/tools", row],
    tool: ["/tools/convert_temperature", () => heading("Try it")],
    "tool-nested": ["/tools/mcp__memory__create_entities", () => heading("Try it")],
    output: ["/tools/add/output", () => heading("Schema")],
    definition: ["/tools/mcp__everything__echo/definition", () => page.getByText("as advertised by the server").waitFor()],
    confirm: ["/tools/mcp__memory__create_entities?args=%7B%22entities%22%3A%5B%5D%7D", async () => {
      await page.getByRole("button", { name: "Call create_entities" }).click();
      await page.getByRole("dialog").waitFor();
    }],
    servers: ["/servers", row],
    server: ["/servers/memory", () => heading("memory")],
    "server-locked": ["/servers/guarded", () => page.getByRole("button", { name: "Log in" }).waitFor()],
    stderr: ["/servers/spare/stderr", () => page.getByLabel("Standard error").waitFor()],
    transcript: ["/servers/spare/transcript", () => page.getByText("newest first").waitFor()],
    resources: ["/resources", row],
    resource: ["/resources/demo/demo%3A%2F%2Fabout", async () => {
      await page.getByRole("button", { name: "Read", exact: true }).click();
      await page.getByRole("region", { name: "Preview" }).waitFor();
    }],
    prompts: ["/prompts", row],
    prompt: ["/prompts/mcp__everything__args-prompt?args=%7B%22city%22%3A%22Paris%22%7D", async () => {
      await page.getByRole("button", { name: "Get prompt" }).click();
      await page.getByRole("region", { name: "Messages" }).waitFor();
    }],
    calls: ["/calls?session=spoken", () => page.locator("a.row").nth(1).waitFor()],
    call: [`/calls/${calls[0].metadata.executionId}?session=spoken`, () => page.getByRole("region", { name: "Stored execution" }).waitFor()],
    programs: ["/programs", () => page.getByRole("button", { name: "Run", exact: true }).waitFor()],
    palette: ["/tools", async () => {
      await page.keyboard.press("Control+k");
      await page.getByLabel("Go to anything").fill("echo");
    }],
  };
  await visit(page, yard, "/servers");
  await connected(page);
  // Wait until all servers have started.
  await page.locator("a.row", { hasText: /everything.*17 tools/ }).waitFor();
  await page.waitForFunction(() => document.querySelectorAll("a.row").length >= 10 && ![...document.querySelectorAll("a.row")].some((one) => /starting/.test(one.textContent) && !/broken/.test(one.textContent)));
  for (const [name, [place, ready]] of Object.entries(views)) {
    await tally.check(`the accessibility tree of the view ${name} matches its snapshot`, async () => {
      // The sign-in form, in a context without a token.
      if (name === "gate") {
        const stranger = await visitor(browser, yard.url);
        const other = await stranger.context.newPage();
        await other.goto(`${yard.url}/`);
        await other.getByRole("heading", { name: "Enter your token" }).waitFor();
        await compare(name, await spoken(other));
        await stranger.context.close();
        return;
      }
      await visit(page, yard, place);
      await ready();
      await compare(name, await spoken(page));
      if (await page.getByRole("dialog").count()) await page.keyboard.press("Escape");
    });
  }
  await context.close();
}
