// Trying tools in the page, against the real binary: forms, confirmations, progress, pieces, questions and results.
import { equal, holds, visit } from "./browser.mjs";

export async function tryTools(tally, yard, context, files) {
  const page = await context.newPage();
  const open = async (tool, query = "") => {
    await visit(page, yard, `/tools/${encodeURIComponent(tool)}${query}`);
    await page.getByRole("heading", { name: "Try it" }).waitFor();
  };
  const result = page.getByRole("region", { name: "Result of the call" });
  const ended = (state) => result.getByRole("status").filter({ hasText: state }).waitFor();
  const press = (name) => page.getByRole("button", { name, exact: true }).click();
  /** Calls what is open, and says yes if that is asked. */
  const call = async (name) => {
    const send = page.getByRole("dialog").getByRole("button", { name: "Send", exact: true });
    await press(`Call ${name}`);
    await Promise.any([result.waitFor(), send.waitFor().then(() => send.click())]);
  };
  const clipboard = () => page.evaluate(() => navigator.clipboard.readText());
  const field = (name) => page.getByLabel(new RegExp(`^${name}\\b`)).first();

  await tally.check("a tool shows name, full name, description and parameters, required ones first", async () => {
    await open("convert_temperature");
    const facts = await page.locator("dl.facts").first().innerText();
    holds(/Tool name\s+convert_temperature/.test(facts) && /Full name\s+convert_temperature/.test(facts), facts);
    const needs = await page.locator(".params > .param .need").allInnerTexts();
    equal(needs, [...needs].sort((a, b) => b.localeCompare(a)), "the order of parameters");
    holds(needs.includes("(required)") && needs.includes("(optional)"), needs);
    holds((await page.locator(".params").innerText()).includes("default:"), "no default is shown");
  });

  await tally.check("types, choices, ranges and what is nested are shown, and hints are said to be unchecked", async () => {
    await open("convert_temperature");
    const shown = await page.locator(".params").innerText();
    holds(/value\s*\(required\)\s*number/.test(shown) && /one of\s*"celsius"\s*"fahrenheit"\s*"kelvin"/.test(shown), shown);
    const facts = await page.locator("dl.facts").first().innerText();
    holds(/only reads/.test(facts) && /as the server says, not checked/.test(facts), facts);
    await open("count_down");
    holds(/\d+ to \d+/.test(await page.locator(".params").innerText()), "no range is shown");
    await open("mcp__memory__create_entities");
    await page.getByRole("button", { name: /what is in entities/ }).click();
    holds(/observations\s*\(required\)/.test(await page.locator(".params").first().innerText()), await page.locator(".params").first().innerText());
  });

  await tally.check("the form begins with the defaults", async () => {
    await open("mcp__everything__trigger-long-running-operation");
    equal([await field("duration").inputValue(), await field("steps").inputValue()], ["10", "5"]);
  });

  await tally.check("the full name is copied", async () => {
    await open("mcp__everything__echo");
    await page.getByRole("button", { name: "Copy full name" }).click();
    await page.getByText("Copied", { exact: true }).waitFor();
    equal(await clipboard(), "mcp__everything__echo");
  });

  await tally.check("what is wrong is said at the field, and what is right is called", async () => {
    await open("add");
    await field("a").fill("forty");
    await press("Call add");
    await page.locator(".field.faulty").nth(1).waitFor();
    equal(await page.locator(".field.faulty").count(), 2, "fields that are wrong");
    holds((await page.locator(".wrong").allInnerTexts()).some((text) => text.includes("required")), "nothing is required");
    equal(await page.evaluate(() => document.activeElement?.getAttribute("aria-invalid")), "true", "the focus on a wrong field");
    await field("a").fill("40");
    await field("b").fill("2");
    await press("Call add");
    await ended("succeeded");
    holds((await result.innerText()).includes("42"), await result.innerText());
    holds(/\d+ (ms|s).*, \d+ B/s.test(await result.locator("h2").innerText()), "neither time nor size");
  });

  await tally.check("arguments that were used before can be used again, and JSON can be written", async () => {
    await open("add");
    await page.getByLabel("Arguments used before").selectOption({ index: 1 });
    equal(await field("a").inputValue(), "40");
    await press("JSON");
    const raw = page.getByLabel("Arguments as JSON");
    equal(JSON.parse(await raw.inputValue()), { a: 40, b: 2 });
    await raw.fill('{"a": 1');
    await press("Call add");
    await page.getByRole("alert").waitFor();
    await raw.fill('{"a": 1, "b": 12345678901234567890}');
    await press("Form");
    equal(await field("b").inputValue(), "12345678901234567890", "a number with all its digits");
  });

  await tally.check("a call that may change something is confirmed, and shows what will be sent", async () => {
    await open("mcp__memory__create_entities", `?args=${encodeURIComponent('{"entities":[{"name":"Grace","entityType":"person","observations":["likes <b>ships</b>"]}]}')}`);
    await press("Call create_entities");
    const dialog = page.getByRole("dialog");
    await dialog.waitFor();
    holds((await dialog.innerText()).includes("likes <b>ships</b>"), await dialog.innerText());
    await dialog.getByRole("button", { name: "Do not send" }).click();
    equal(await result.count(), 0, "results of what was not sent");
    await press("Call create_entities");
    await dialog.getByRole("button", { name: "Send", exact: true }).click();
    await ended("succeeded");
  });

  await tally.check("a list of objects is a table", async () => {
    await open("mcp__memory__read_graph");
    await call("read_graph");
    await ended("succeeded");
    const headers = await result.locator("th").first().waitFor().then(() => result.locator("th").allInnerTexts());
    holds(headers.includes("name") && headers.includes("entityType"), headers);
  });

  await tally.check("progress is shown, and a call is cancelled", async () => {
    await open("count_down");
    await field("from").fill("50");
    await call("count_down");
    await page.waitForFunction(() => Number(document.querySelector("progress")?.getAttribute("value") ?? document.querySelector("progress")?.value ?? 0) > 0);
    await press("Cancel");
    await ended("cancelled");
  });

  await tally.check("pieces are shown as they come", async () => {
    await open("stream_words");
    await field("text").fill("alpha beta gamma delta epsilon");
    const several = page.locator('[aria-label="What came in pieces"]').filter({ hasText: "alpha" });
    const seen = several.waitFor();
    await call("stream_words");
    await seen;
    await ended("succeeded");
    holds((await result.innerText()).includes("epsilon") && (await result.innerText()).includes("5 words"), await result.innerText());
  });

  await tally.check("a tool's question is a form, and its answer goes back", async () => {
    await open("ask_name");
    await call("ask_name");
    const question = page.getByRole("region", { name: "Questions of the server" });
    await question.waitFor();
    await question.getByRole("textbox").first().fill("Ada <i>Lovelace</i>");
    await question.getByRole("button", { name: "Answer" }).click();
    await ended("succeeded");
    holds((await result.innerText()).includes("Ada <i>Lovelace</i>"), await result.innerText());
  });

  await tally.check("a question can be declined", async () => {
    await open("ask_name");
    await call("ask_name");
    await page.getByRole("button", { name: "Decline" }).click();
    await ended("succeeded");
  });

  await tally.check("a picture is shown", async () => {
    await open("draw_swatch");
    await field("color").fill("#1c6b58");
    await call("draw_swatch");
    await ended("succeeded");
    await page.waitForFunction(() => (document.querySelector("img.picture")?.naturalWidth ?? 0) > 0);
  });

  await tally.check("a sound is played", async () => {
    await open("mcp__filesystem__read_media_file", `?args=${encodeURIComponent(JSON.stringify({ path: `${files}/tone.wav` }))}`);
    await call("read_media_file");
    await ended("succeeded");
    const sound = result.locator("audio");
    await sound.waitFor();
    await page.waitForFunction(() => document.querySelector("audio")?.readyState >= 1);
    const length = await sound.evaluate((one) => one.duration);
    holds(Math.abs(length - 0.2) < 0.05, `${length} s`);
    await sound.evaluate((one) => { one.muted = true; return one.play(); });
    await page.waitForFunction(() => document.querySelector("audio").ended);
  });

  await tally.check("a result is content, a tree, and the whole as it came", async () => {
    await open("mcp__everything__get-structured-content", `?args=${encodeURIComponent('{"location":"New York"}')}`);
    await call("get-structured-content");
    await ended("succeeded");
    await press("Structured");
    await result.getByText("temperature").first().waitFor();
    await press("Raw");
    await result.getByText("structuredContent").first().waitFor();
    await press("Content");
    await press("Text");
    await result.locator("pre", { hasText: "temperature" }).waitFor();
  });

  await tally.check("links to resources lead to them", async () => {
    await open("mcp__everything__get-resource-links");
    await call("get-resource-links");
    await ended("succeeded");
    await result.getByRole("link").filter({ hasText: /esource/ }).first().click();
    await page.waitForFunction(() => location.hash.startsWith("#/resources/everything/"));
    await press("Read");
    await page.getByRole("region", { name: "Preview" }).waitFor();
  });

  await tally.check("embedded resources are shown and can be downloaded", async () => {
    await open("mcp__everything__get-resource-reference");
    await call("get-resource-reference");
    await ended("succeeded");
    const [file] = await Promise.all([page.waitForEvent("download"), result.getByRole("link", { name: /Download/ }).first().click()]);
    holds(file.suggestedFilename().length > 0, "a file without a name");
  });

  await tally.check("a tool that says that it failed is told from one that cannot be called", async () => {
    await open("fail");
    await page.locator(".field textarea, .field input").first().fill("out of luck");
    await call("fail");
    await ended("failed");
    await result.getByText(/out of luck/).first().waitFor();
  });

  await tally.check("output schema and definition have addresses of their own", async () => {
    await visit(page, yard, "/tools/add/output");
    await page.getByText("sum").first().waitFor();
    await visit(page, yard, "/tools/mcp__everything__echo/definition");
    await page.getByText("What the server advertised, untouched.").waitFor();
  });
  await page.close();
}
