// A browser that records hidden errors on every page: requests to other origins, policy violations, and exceptions.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const FLAGS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync",
];
/** Timeout in milliseconds, long enough for a busy machine. */
export const PATIENCE = 20_000;
export const NARROW = { width: 360, height: 740 };
export const WIDE = { width: 1280, height: 800 };

export class Tally {
  passed = 0;
  failed = 0;
  /** The names of the checks that passed. */
  seen = [];

  /** Runs one check. An exception is a failure; the next check still runs. */
  async check(what, body) {
    try {
      await body();
      this.passed++;
      this.seen.push(what);
      console.log(`ok ${what}`);
    } catch (error) {
      this.failed++;
      console.log(`FAIL ${what}: ${String(error.stack ?? error).split("\n").slice(0, 6).join(" | ").slice(0, 900)}`);
    }
  }
}

export function equal(got, expected, what = "") {
  const [a, b] = [JSON.stringify(got), JSON.stringify(expected)];
  if (a !== b) throw new Error(`${what} is ${a}, not ${b}`);
}

export function holds(condition, what) {
  if (!condition) throw new Error(what);
}

export async function launch() {
  return chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: FLAGS });
}

/** Returns a new browser context and its list of hidden errors. Links may open the origins in `elsewhere` in new tabs. */
export async function visitor(browser, origin, options = {}) {
  const context = await browser.newContext({ viewport: WIDE, permissions: ["clipboard-read", "clipboard-write"], ...options });
  context.setDefaultTimeout(PATIENCE);
  const wrong = [];
  const elsewhere = new Set();
  context.on("request", (request) => {
    const { protocol, origin: target } = new URL(request.url());
    if (protocol === "data:" || protocol === "blob:" || target === origin) return;
    // The page itself must not send requests to other origins. A link may open one in a new tab.
    if (!elsewhere.has(target) || !inOtherTab(request, origin)) wrong.push(`requested ${request.url()}`);
  });
  context.on("page", (page) => {
    page.on("pageerror", (error) => wrong.push(`threw ${error.message}`));
    page.on("console", (line) => {
      if (/content security policy|refused to|\[vue/i.test(line.text())) wrong.push(`logged ${line.text()}`);
    });
    page.on("websocket", (socket) => {
      if (new URL(socket.url()).host !== new URL(origin).host) wrong.push(`opened ${socket.url()}`);
    });
  });
  await context.addInitScript(() => {
    addEventListener("securitypolicyviolation", (event) => console.error(`content security policy: ${event.violatedDirective} ${event.blockedURI}`));
  });
  return { context, wrong, elsewhere };
}

function inOtherTab(request, origin) {
  try {
    return new URL(request.frame().page().url()).origin !== origin;
  } catch {
    // The first request of a new tab.
    return request.isNavigationRequest();
  }
}

/** Calls a tool over REST, like another client. */
export async function rest(yard, tool, params, context = {}) {
  const headers = { authorization: `Bearer ${yard.token}`, "content-type": "application/json" };
  const answer = await fetch(`${yard.url}/mcp/tools/${encodeURIComponent(tool)}/execute`, { method: "POST", headers, body: JSON.stringify({ params, context }) });
  return answer.json();
}

/** Waits until the page is connected. */
export function connected(page) {
  return page.locator(".top .state.good").waitFor();
}

/** Clicks a copy button and returns the text on the clipboard. */
export async function copied(page, button) {
  await page.evaluate(() => navigator.clipboard.writeText(""));
  await page.getByRole("button", { name: button, exact: true }).first().click();
  // `waitForFunction` does not poll a function that returns a promise.
  const until = Date.now() + PATIENCE;
  for (;;) {
    const text = await page.evaluate(() => navigator.clipboard.readText());
    if (text) return text;
    holds(Date.now() < until, `${button} did not copy anything`);
    await page.waitForTimeout(50);
  }
}

/** Returns the serious findings of axe. It runs outside the page, because the content security policy blocks it inside. */
export async function axe(page) {
  if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(AXE);
  const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"], runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }));
  return found.violations
    .filter((one) => ["serious", "critical"].includes(one.impact))
    .map((one) => `${one.id}: ${one.nodes.slice(0, 3).map((node) => `${node.target} ${node.failureSummary?.split("\n")[1] ?? ""}`).join("; ")}`);
}

/** Opens a view: with the token if the page is not open yet, otherwise like a link in the page. */
export async function visit(page, yard, place) {
  await page.goto(page.url().startsWith(`${yard.url}/`) ? `${yard.url}/#${place}` : at(yard, place));
}

/** Returns the URL of a view, with the token. */
export function at(yard, place = "/tools") {
  return `${yard.url}/#token=${encodeURIComponent(yard.token)}&go=${encodeURIComponent(place)}`;
}
