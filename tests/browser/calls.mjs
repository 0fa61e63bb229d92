// Calls tools in the page with the real binary: forms, confirmations, progress, chunks, questions and results.
import { equal, holds, visit } from "./browser.mjs";

export async function tryTools(tally, yard, context, files) {
  const page = await context.newPage();
  const open = async (tool, query = "") => {
    await visit(page, yard, `/tools/${encodeURIComponent(tool)}${query}`);
    await page.getByRole("heading", { name: "Try it" }).waitFor();
  };
  const result = page.getByRole("region", { name: "Call result" });
  const ended = (state) => result.getByRole("status").filter({ hasText: state }).waitFor();
  const press = (name) => page.getByRole("button", { name, exact: true }).click();
  /** Calls the open tool, and confirms the call if necessary. */
  const call = async (name) => {
    const send = page.getByRole("dialog").getByRole("button", { name: "Call", exact: true });
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

  await tally.check("types, enums, ranges and nested parameters are shown, and annotations are marked as unverified", async () => {
    await open("convert_temperature");
    const shown = await page.locator(".params").innerText();
    holds(/value\s*\(required\)\s*number/.test(shown) && /one of\s*"celsius"\s*"fahrenheit"\s*"kelvin"/.test(shown), shown);
    const facts = await page.locator("dl.facts").first().innerText();
    holds(/\bread-only\b/.test(facts) && /Server annotations \(unverified\)/.test(facts), facts);
    await open("count_down");
    holds(/\d+ to \d+/.test(await page.locator(".params").innerText()), "no range is shown");
    await open("mcp__memory__create_entities");
    await page.getByRole("button", { name: /Properties of entities/ }).click();
    holds(/observations\s*\(required\)/.test(await page.locator(".params").first().innerText()), await page.locator(".params").first().innerText());
  });

  await tally.check("the form starts with the defaults", async () => {
    await open("mcp__everything__trigger-long-running-operation");
    equal([await field("duration").inputValue(), await field("steps").inputValue()], ["10", "5"]);
  });

  await tally.check("the full name can be copied", async () => {
    await open("mcp__everything__echo");
    await page.getByRole("button", { name: "Copy full name" }).click();
    await page.getByText("Copied", { exact: true }).waitFor();
    equal(await clipboard(), "mcp__everything__echo");
  });

  await tally.check("invalid arguments are reported at their fields, and valid ones are sent", async () => {
    await open("add");
    await field("a").fill("forty");
    await press("Call add");
    await page.locator(".field.faulty").nth(1).waitFor();
    equal(await page.locator(".field.faulty").count(), 2, "invalid fields");
    holds((await page.locator(".wrong").allInnerTexts()).some((text) => text.includes("required")), "no missing field is reported");
    equal(await page.evaluate(() => document.activeElement?.getAttribute("aria-invalid")), "true", "the focus is on an invalid field");
    await field("a").fill("40");
    await field("b").fill("2");
    await press("Call add");
    await ended("succeeded");
    holds((await result.innerText()).includes("42"), await result.innerText());
    holds(/\d+ (ms|s).*, \d+ B/s.test(await result.locator("h2").innerText()), "no duration or size");
  });

  await tally.check("recent arguments can be reused, and arguments can be edited as JSON", async () => {
    await open("add");
    await page.getByLabel("Recent arguments").selectOption({ index: 1 });
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

  await tally.check("a call to a tool that is not read-only must be confirmed, and the arguments are shown", async () => {
    await open("mcp__memory__create_entities", `?args=${encodeURIComponent('{"entities":[{"name":"Grace","entityType":"person","observations":["likes <b>ships</b>"]}]}')}`);
    await press("Call create_entities");
    const dialog = page.getByRole("dialog");
    await dialog.waitFor();
    holds((await dialog.innerText()).includes("likes <b>ships</b>"), await dialog.innerText());
    await dialog.getByRole("button", { name: "Cancel" }).click();
    equal(await result.count(), 0, "results of a canceled call");
    await press("Call create_entities");
    await dialog.getByRole("button", { name: "Call", exact: true }).click();
    await ended("succeeded");
  });

  await tally.check("a list of objects is shown as a table", async () => {
    await open("mcp__memory__read_graph");
    await call("read_graph");
    await ended("succeeded");
    const headers = await result.locator("th").first().waitFor().then(() => result.locator("th").allInnerTexts());
    holds(headers.includes("name") && headers.includes("entityType"), headers);
  });

  await tally.check("progress is shown, and a call can be canceled", async () => {
    await open("count_down");
    await field("from").fill("50");
    await call("count_down");
    await page.waitForFunction(() => Number(document.querySelector("progress")?.getAttribute("value") ?? document.querySelector("progress")?.value ?? 0) > 0);
    await press("Cancel");
    await ended("cancelled");
  });

  await tally.check("streamed chunks are shown as they arrive", async () => {
    await open("stream_words");
    await field("text").fill("alpha beta gamma delta epsilon");
    const several = page.locator('[aria-label="Streamed output"]').filter({ hasText: "alpha" });
    const seen = several.waitFor();
    await call("stream_words");
    await seen;
    await ended("succeeded");
    holds((await result.innerText()).includes("epsilon") && (await result.innerText()).includes("5 words"), await result.innerText());
  });

  await tally.check("an elicitation can be answered", async () => {
    await open("ask_name");
    await call("ask_name");
    const question = page.getByRole("region", { name: "Input requested by the server" });
    await question.waitFor();
    await question.getByRole("textbox").first().fill("Ada <i>Lovelace</i>");
    await question.getByRole("button", { name: "Submit" }).click();
    await ended("succeeded");
    holds((await result.innerText()).includes("Ada <i>Lovelace</i>"), await result.innerText());
  });

  await tally.check("an elicitation can be declined", async () => {
    await open("ask_name");
    await call("ask_name");
    await page.getByRole("button", { name: "Decline" }).click();
    await ended("succeeded");
  });

  await tally.check("an image is shown", async () => {
    await open("draw_swatch");
    await field("color").fill("#1c6b58");
    await call("draw_swatch");
    await ended("succeeded");
    await page.waitForFunction(() => (document.querySelector("img.picture")?.naturalWidth ?? 0) > 0);
  });

  await tally.check("audio is played", async () => {
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

  await tally.check("a result is shown as content, as a tree, and raw", async () => {
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

  await tally.check("resource links open the resource", async () => {
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

  await tally.check("an error that a tool reports is shown as its result", async () => {
    await open("fail");
    await page.locator(".field textarea, .field input").first().fill("out of luck");
    await call("fail");
    await ended("failed");
    await result.getByText(/out of luck/).first().waitFor();
  });

  await tally.check("the output schema and the definition have their own URLs", async () => {
    await visit(page, yard, "/tools/add/output");
    await page.getByText("sum").first().waitFor();
    await visit(page, yard, "/tools/mcp__everything__echo/definition");
    await page.getByText("The definition as advertised by the server.").waitFor();
  });
  await page.close();
}
