// Takes the screenshots of every view for the documentation.
import { at, NARROW, visitor, WIDE } from "./browser.mjs";

export async function gallery(yard, browser, folder) {
  const { context } = await visitor(browser, yard.url, { colorScheme: "light", viewport: WIDE });
  const page = await context.newPage();
  const open = async (place) => {
    await page.goto(at(yard, place));
    await page.locator(".top .state.good").waitFor();
    await page.waitForTimeout(800);
  };
  const keep = (name) => page.screenshot({ path: `${folder}/${name}.png` });
  const rest = (tool, params) =>
    fetch(`${yard.url}/mcp/tools/${tool}/execute`, { method: "POST", headers: { authorization: `Bearer ${yard.token}`, "content-type": "application/json" }, body: JSON.stringify({ params }) }).then((answer) => answer.text());

  await open("/servers/everything/transcript");
  await page.waitForTimeout(1_500);
  const slow = rest("count_down", { from: 30 });
  for (let round = 0; round < 4; round++) {
    await Promise.all([rest("add", { a: round, b: 1 }), rest("mcp__everything__echo", { message: `hello ${round}` }), rest("mcp__memory__read_graph", {})]);
    await rest("mcp__everything__get-sum", { a: round, b: 2 });
  }
  await rest("fail", { message: "out of luck" });
  await page.waitForTimeout(1_500);
  await keep("transcript");
  await open("/calls");
  await keep("calls");
  await slow;
  await open("/servers/everything");
  await keep("servers");
  await open("/resources");
  await page.locator("a.row").filter({ hasText: "demo://about" }).click();
  await page.getByRole("button", { name: "Read", exact: true }).click();
  await page.getByRole("region", { name: "Preview" }).waitFor();
  await keep("resources");
  await open("/prompts/mcp__everything__args-prompt");
  await page.getByLabel(/^city/).fill("Paris");
  await page.getByRole("button", { name: "Get prompt" }).click();
  await page.getByRole("region", { name: "Messages" }).waitFor();
  await keep("prompts");
  await open("/programs");
  await page.getByLabel("Program code").fill("for n in range(3):\n    answer = await add(a=n, b=40)\n    print(n, answer['sum'])\n");
  // Twice, because the first run starts the engine.
  for (let round = 0; round < 2; round++) {
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Call", exact: true }).click();
    await page.getByRole("region", { name: "Call result" }).getByText("succeeded").waitFor();
    await page.getByRole("region", { name: "Calls by the program" }).locator(".call").nth(2).waitFor();
  }
  await keep("programs");
  await open(`/tools/mcp__memory__open_nodes?args=${encodeURIComponent('{"names":["Ada"]}')}`);
  await page.getByRole("button", { name: "Call open_nodes" }).click();
  const send = page.getByRole("dialog").getByRole("button", { name: "Call", exact: true });
  const result = page.getByRole("region", { name: "Call result" });
  await Promise.any([result.waitFor(), send.waitFor().then(() => send.click())]);
  await result.locator("th").first().waitFor();
  await keep("tool");
  await page.emulateMedia({ colorScheme: "dark" });
  await page.waitForTimeout(300);
  await keep("tool-dark");
  await page.setViewportSize(NARROW);
  await page.waitForTimeout(500);
  await keep("tool-narrow");
  await context.close();
}
