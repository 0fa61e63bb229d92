// Checks every view in both themes and two widths: axe finds no serious problem, and the layout fits the screen.
import { axe, connected, equal, holds, visit, visitor } from "./browser.mjs";

const row = "a.row";
const PLACES = {
  tools: ["/tools", row], tool: ["/tools/convert_temperature", "#try-title"], output: ["/tools/add/output", "h2"],
  servers: ["/servers", row], server: ["/servers/everything", ".facts"], transcript: ["/servers/everything/transcript", ".found"],
  resources: ["/resources/demo/demo%3A%2F%2Fabout", ".facts"], prompts: ["/prompts/mcp__everything__args-prompt", ".facts"],
  calls: ["/calls", row], programs: ["/programs", ".editor"],
};

export async function everyView(tally, yard, browser, colorScheme, viewport) {
  const { context, wrong } = await visitor(browser, yard.url, { colorScheme, viewport, reducedMotion: "reduce" });
  const page = await context.newPage();
  for (const [name, [place, there]] of Object.entries(PLACES)) {
    await tally.check(`${name} in ${colorScheme} at ${viewport.width} px: axe finds no serious problem, and the layout fits`, async () => {
      await visit(page, yard, place);
      await connected(page);
      await page.locator(`main ${there} >> visible=true`).first().waitFor();
      equal(await axe(page), []);
      const wide = await page.evaluate(() => [document.scrollingElement.scrollWidth, ...[...document.querySelectorAll(".detail, .side")].map((one) => one.scrollWidth - one.clientWidth)]);
      holds(wide[0] <= viewport.width && wide.slice(1).every((over) => over <= 0), `too wide: ${wide}`);
    });
  }
  await tally.check(`no hidden errors in ${colorScheme} at ${viewport.width} px`, async () => equal(wrong, []));
  await context.close();
}
