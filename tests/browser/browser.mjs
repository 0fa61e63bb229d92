// A browser whose every page is watched: nothing may leave the origin, break the page's security policy, or go wrong unseen.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const FLAGS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync",
];
/** How long anything may take before it is taken to be missing: long, because others may be using the machine. */
export const PATIENCE = 20_000;
export const NARROW = { width: 360, height: 740 };
export const WIDE = { width: 1280, height: 800 };

export class Tally {
  passed = 0;
  failed = 0;
  /** The names of the checks that passed. */
  seen = [];

  /** Runs one check. Whatever it throws is why it failed, and the next one goes on. */
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

/** A window of its own, with nothing kept from before. Pages that others open, at addresses in `elsewhere`, are not ours. */
export async function visitor(browser, origin, options = {}) {
  const context = await browser.newContext({ viewport: WIDE, permissions: ["clipboard-read", "clipboard-write"], ...options });
  context.setDefaultTimeout(PATIENCE);
  const wrong = [];
  const elsewhere = new Set();
  context.on("request", (request) => {
    const { protocol, origin: asked } = new URL(request.url());
    if (protocol === "data:" || protocol === "blob:" || asked === origin) return;
    // The page itself asks for nothing elsewhere; a link may lead there, in a tab of its own.
    if (!elsewhere.has(asked) || !inOtherTab(request, origin)) wrong.push(`asked for ${request.url()}`);
  });
  context.on("page", (page) => {
    page.on("pageerror", (error) => wrong.push(`threw ${error.message}`));
    page.on("console", (line) => {
      if (/content security policy|refused to|\[vue/i.test(line.text())) wrong.push(`said ${line.text()}`);
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
    // A tab that has just been opened, and asks for what it is to show.
    return request.isNavigationRequest();
  }
}

/** A call of another front. */
export async function rest(yard, tool, params, context = {}) {
  const headers = { authorization: `Bearer ${yard.token}`, "content-type": "application/json" };
  const answer = await fetch(`${yard.url}/mcp/tools/${encodeURIComponent(tool)}/execute`, { method: "POST", headers, body: JSON.stringify({ params, context }) });
  return answer.json();
}

/** Waits until the page has its socket. */
export function connected(page) {
  return page.locator(".top .state.good").waitFor();
}

/** What the clipboard has, once it has something that the page put there. */
export async function copied(page, button) {
  await page.evaluate(() => navigator.clipboard.writeText(""));
  await page.getByRole("button", { name: button, exact: true }).first().click();
  // What waits for a function of the page waits for its first answer only, where the answer is a promise.
  const until = Date.now() + PATIENCE;
  for (;;) {
    const text = await page.evaluate(() => navigator.clipboard.readText());
    if (text) return text;
    holds(Date.now() < until, `${button} copied nothing`);
    await page.waitForTimeout(50);
  }
}

/** What axe finds that matters. It is run from outside the page, whose policy lets nobody else in. */
export async function axe(page) {
  if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(AXE);
  const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"], runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }));
  return found.violations
    .filter((one) => ["serious", "critical"].includes(one.impact))
    .map((one) => `${one.id}: ${one.nodes.slice(0, 3).map((node) => `${node.target} ${node.failureSummary?.split("\n")[1] ?? ""}`).join("; ")}`);
}

/** Goes to a place of the page: with the token if the page is not open yet, else as a link of the page would. */
export async function visit(page, yard, place) {
  await page.goto(page.url().startsWith(`${yard.url}/`) ? `${yard.url}/#${place}` : at(yard, place));
}

/** The address of a place in the page, with the token. */
export function at(yard, place = "/tools") {
  return `${yard.url}/#token=${encodeURIComponent(yard.token)}&go=${encodeURIComponent(place)}`;
}
