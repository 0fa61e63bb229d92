// The checks that every TypeScript client runs against the demo yard. cases.json has the expected values.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

const cases = JSON.parse(readFileSync(new URL("cases.json", import.meta.url), "utf8"));
const [label, mode, transport] = process.argv.slice(2);
const era = mode === "legacy" ? "legacy" : "modern";
let checks = 0;

/** Runs a check and prints its result on one line. */
async function check(name, body) {
  checks += 1;
  let timer;
  const limit = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error("no response within 10 s")), 10_000);
  });
  try {
    await Promise.race([body(), limit]);
    console.log(`ok ${label}: ${name}`);
  } catch (error) {
    const reason = String(error?.message ?? error).replace(/\s+/g, " ").slice(0, 400);
    console.log(`FAIL ${label}: ${name}\t${reason}`);
  } finally {
    clearTimeout(timer);
  }
}

/** Returns the JSON-RPC code of the error that a request must fail with. */
async function refusal(promise) {
  const answer = await promise.then((result) => ({ result }), (error) => ({ error }));
  assert.ok(answer.error, `expected an error, got ${JSON.stringify(answer.result)}`);
  assert.equal(typeof answer.error.code, "number", `not a JSON-RPC error: ${answer.error}`);
  return answer.error.code;
}

/** Returns the relevant parts of a tool result. */
function plain({ content, structuredContent, isError }) {
  return { content, structuredContent, isError: isError ?? false };
}

function texts(words) {
  return words.map((text) => ({ type: "text", text }));
}

function textResult(words) {
  return { content: texts(words), structuredContent: undefined, isError: false };
}

function keys(object) {
  return Object.keys(object).sort();
}

async function checkTools({ client, call, progressOnWire }) {
  await check("tools/list", async () => {
    const { tools } = await client.listTools();
    const seen = {};
    for (const { name, inputSchema } of tools) {
      assert.equal(inputSchema.type, "object", `inputSchema of ${name}`);
      seen[name] = { properties: keys(inputSchema.properties ?? {}), required: [...(inputSchema.required ?? [])].sort() };
    }
    assert.equal(tools.length, keys(seen).length, "duplicate names");
    assert.deepEqual(seen, cases.tools);
  });
  for (const { tool, arguments: given, result, more_keys } of cases.structured) {
    await check(`tools/call ${tool} ${JSON.stringify(given)}`, async () => {
      const answer = plain(await call(tool, given));
      if (more_keys) {
        for (const key of keys(result)) assert.deepEqual(answer.structuredContent?.[key], result[key], key);
      } else {
        assert.deepEqual(answer.structuredContent, result);
      }
      assert.equal(answer.isError, false);
      assert.deepEqual(answer.content.map((block) => block.type), ["text"]);
      assert.deepEqual(JSON.parse(answer.content[0].text), answer.structuredContent);
    });
  }
  for (const { tool, arguments: given, result } of cases.texts) {
    await check(`tools/call ${tool} ${JSON.stringify(given)}`, async () => {
      assert.deepEqual(plain(await call(tool, given)), textResult(result));
    });
  }
  for (const { tool, arguments: given, width, height } of cases.images) {
    await check(`tools/call ${tool} ${JSON.stringify(given)}`, async () => {
      const answer = plain(await call(tool, given));
      const data = answer.content[0]?.data ?? "";
      const image = [{ type: "image", mimeType: "image/png", data }];
      assert.deepEqual(answer, { content: image, structuredContent: undefined, isError: false });
      const png = Buffer.from(data, "base64");
      assert.equal(png.toString("latin1", 0, 8), "\x89PNG\r\n\x1a\n", "PNG magic");
      assert.equal(png.toString("latin1", 12, 16), "IHDR");
      assert.deepEqual([png.readUInt32BE(16), png.readUInt32BE(20)], [width, height], "size in IHDR");
    });
  }
  const { tool, arguments: given, times, total, result } = cases.progress;
  await check(`tools/call ${tool} reports progress`, async () => {
    const seen = [];
    const before = progressOnWire();
    const answer = plain(await call(tool, given, (progress) => seen.push(progress)));
    assert.deepEqual(answer, textResult(result));
    const wire = progressOnWire() - before;
    assert.equal(seen.length, times, `${seen.length} reports reached the caller, ${wire} were on the wire`);
    assert.ok(seen.every((report) => report.total === total), `total: ${JSON.stringify(seen)}`);
    const rises = seen.every((report, i) => i === 0 || report.progress > seen[i - 1].progress);
    assert.ok(rises, `not increasing: ${JSON.stringify(seen)}`);
  });
  await check(`tools/call ${tool} without a progress token reports none`, async () => {
    const before = progressOnWire();
    assert.deepEqual(plain(await call(tool, given)), textResult(result));
    assert.equal(progressOnWire() - before, 0);
  });
}

async function checkFailures({ call }) {
  for (const { why, tool, arguments: given, text: expected } of cases.failing) {
    await check(`tools/call ${tool} when ${why}`, async () => {
      const answer = plain(await call(tool, given));
      assert.equal(answer.isError, true);
      const text = answer.content.filter((block) => block.type === "text").map((block) => block.text).join("\n");
      assert.notEqual(text.trim(), "", "the error has no text");
      assert.ok(text.includes(expected ?? ""), `${JSON.stringify(text)} does not contain ${JSON.stringify(expected)}`);
    });
  }
  await check("tools/call of an unknown tool", async () => {
    assert.equal(await refusal(call("no_such_tool", {})), -32602);
  });
  await check("tools/call ask_name without the elicitation capability", async () => {
    if (era === "modern") {
      assert.equal(await refusal(call("ask_name", {})), -32021);
    } else {
      assert.equal((await call("ask_name", {})).isError, true);
    }
  });
}

async function checkResources({ client, codeOnWire }) {
  const { resource, template, unknownResource } = cases;
  await check("resources/list", async () => {
    const { resources } = await client.listResources();
    assert.deepEqual(resources.map(({ uri, mimeType }) => ({ uri, mimeType })), [resource]);
  });
  await check("resources/templates/list", async () => {
    const { resourceTemplates } = await client.listResourceTemplates();
    assert.deepEqual(resourceTemplates.map((each) => each.uriTemplate), [template.uriTemplate]);
  });
  await check(`resources/read ${resource.uri}`, async () => {
    const { contents } = await client.readResource({ uri: resource.uri });
    assert.deepEqual(contents.map(({ uri, mimeType }) => ({ uri, mimeType })), [resource]);
    assert.notEqual(contents[0].text.trim(), "");
  });
  await check(`resources/read ${template.uri}`, async () => {
    const { contents } = await client.readResource({ uri: template.uri });
    assert.deepEqual(contents.map(({ uri, text }) => ({ uri, text })), [{ uri: template.uri, text: template.text }]);
  });
  await check("resources/read of an unknown resource", async () => {
    // Version 2 of the client reports one code for both eras, so check the code on the wire.
    await refusal(client.readResource({ uri: unknownResource.uri }));
    assert.equal(codeOnWire(), unknownResource[era]);
  });
}

async function checkPrompts({ client }) {
  const { prompt, completions } = cases;
  await check("prompts/list", async () => {
    const { prompts } = await client.listPrompts();
    assert.deepEqual(prompts.map((each) => each.name), [prompt.name]);
    const seen = Object.fromEntries(prompts[0].arguments.map(({ name, required }) => [name, required ?? false]));
    assert.deepEqual(seen, prompt.arguments);
  });
  await check("prompts/get", async () => {
    const { messages } = await client.getPrompt({ name: prompt.name, arguments: prompt.given });
    const text = messages.map(({ content }) => content.text ?? "").join("\n");
    for (const value of Object.values(prompt.given)) assert.ok(text.includes(value), `${value} is not in: ${text}`);
  });
  await check("prompts/get of an unknown prompt", async () => {
    assert.equal(await refusal(client.getPrompt({ name: "no_such_prompt" })), -32602);
  });
  for (const { argument, value, contains } of completions) {
    await check(`completion/complete ${argument} ${JSON.stringify(value)}`, async () => {
      const ref = { type: "ref/prompt", name: prompt.name };
      const { completion } = await client.complete({ ref, argument: { name: argument, value } });
      assert.notEqual(completion.values.length, 0, "no values");
      for (const each of contains) assert.ok(completion.values.includes(each), `${each} is not in ${completion.values}`);
    });
  }
}

async function checkElicitation(connect) {
  const { tool, answer, result } = cases.elicitation;
  await check(`tools/call ${tool} asks the client`, async () => {
    const questions = [];
    const peer = await connect({
      elicit: (params) => {
        questions.push(params);
        return { action: "accept", content: answer };
      },
    });
    try {
      assert.deepEqual(plain(await peer.call(tool, {})), textResult(result));
      assert.equal(questions.length, 1, "number of questions");
      assert.equal(questions[0].mode ?? "form", "form");
      assert.notEqual(questions[0].message.trim(), "");
      const { type, properties } = questions[0].requestedSchema;
      assert.deepEqual([type, keys(properties), properties.name.type], ["object", ["name"], "string"]);
    } finally {
      await peer.close();
    }
  });
}

/** Runs all checks. `connect({elicit, token})` returns `{client, call, version, sent, progressOnWire, errors, close}`. */
export async function main(connect) {
  let peer;
  await check("connects", async () => {
    peer = await connect({});
  });
  if (peer) {
    await check(`negotiates ${cases.versions[mode]}`, async () => {
      assert.equal(peer.version(), cases.versions[mode]);
    });
    await checkTools(peer);
    await checkFailures(peer);
    await checkResources(peer);
    await checkPrompts(peer);
    await checkElicitation(connect);
    await check("the client reported no errors", async () => {
      assert.deepEqual(peer.errors.map(String), []);
    });
    await check(era === "legacy" ? "initialize is the first request" : "initialize is not sent", async () => {
      if (era === "legacy") {
        assert.deepEqual(peer.sent.slice(0, 2), ["initialize", "notifications/initialized"]);
      } else {
        assert.ok(peer.sent.includes("tools/call"), "no messages were recorded");
        assert.ok(!peer.sent.includes("initialize"), String(peer.sent));
      }
    });
    await check("closes", () => peer.close());
  }
  if (transport === "http") {
    await check("a wrong token is rejected with 401", async () => {
      const answer = await connect({ token: "wrong" }).catch((error) => ({ error }));
      await answer.close?.();
      assert.ok(answer.error, "the client connected");
      assert.equal(answer.error.status ?? answer.error.code, 401, String(answer.error));
    });
  }
  console.log(`end ${checks}`);
}
