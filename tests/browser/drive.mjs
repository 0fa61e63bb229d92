// Drives the page in a real browser. Everything that it needs to know is in the environment; see `run`.
import { equal, launch, Tally, visitor } from "./browser.mjs";
import { tryTools } from "./calls.mjs";
import { crowded } from "./crowded.mjs";
import { gallery } from "./gallery.mjs";
import { firstView } from "./start.mjs";
import { storms } from "./storms.mjs";
import { everyView, keysOnly, lookAround } from "./views.mjs";

const { YARD_URL, YARD_TOKEN, CROWD_URL, CROWD_TOKEN, ASSETS, SHOTS, ONLY } = process.env;
const yard = { url: YARD_URL, token: YARD_TOKEN };
const crowd = { url: CROWD_URL, token: CROWD_TOKEN };
const tally = new Tally();
const browser = await launch();

/** Runs a part with a window that is watched. */
async function watched(label, of, part) {
  const { context, wrong } = await visitor(browser, of.url);
  context.setDefaultTimeout(10_000);
  await part(context);
  await tally.check(`nothing went wrong unseen while ${label}`, async () => equal(wrong, []));
  await context.close();
}

const parts = {
  start: () => firstView(tally, yard, browser),
  calls: () => watched("tools were tried", yard, (context) => tryTools(tally, yard, context)),
  views: () => watched("views were looked at", yard, (context) => lookAround(tally, yard, context)),
  keys: () => watched("keys were used", yard, (context) => keysOnly(tally, yard, context)),
  crowd: () => watched("there were very many tools", crowd, (context) => crowded(tally, crowd, context)),
  storms: () => storms(tally, browser, ASSETS),
  every: () => everyView(tally, yard, browser),
};
for (const [name, part] of Object.entries(parts)) {
  if (ONLY && !ONLY.split(",").includes(name)) continue;
  try {
    await part();
  } catch (error) {
    await tally.check(`the part ${name} ran to its end`, async () => { throw error; });
  }
}
if (SHOTS) await tally.check("pictures of every view are kept", () => gallery(yard, browser, SHOTS));
await browser.close();
console.log(`${tally.passed} passed, ${tally.failed} failed`);
process.exitCode = tally.failed || !tally.passed ? 1 : 0;
