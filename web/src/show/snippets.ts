// A call as code for other environments. It never contains the token.

import { digits, pretty } from "../control/json";

export const LANGUAGES = ["curl", "CLI", "TypeScript", "Python"] as const;
export type Language = (typeof LANGUAGES)[number];

export function snippet(language: Language, origin: string, tool: string, args: unknown): string {
  switch (language) {
    case "curl":
      return [
        `curl -X POST ${quoted(`${origin}/mcp/tools/${encodeURIComponent(tool)}/execute`)} \\`,
        `  -H "Authorization: Bearer $TOOLYARD_TOKEN" -H "Content-Type: application/json" \\`,
        `  -d ${quoted(JSON.stringify({ params: args }))}`,
      ].join("\n");
    case "CLI":
      return [
        `toolyard call ${quoted(tool)} --args ${quoted(JSON.stringify(args))} \\`,
        `  --url ${quoted(`${origin}/mcp`)} --header "Authorization: Bearer $TOOLYARD_TOKEN"`,
      ].join("\n");
    case "TypeScript":
      return [
        `import { MCPClient } from "@toolyard/client";`,
        "",
        `const client = new MCPClient({ baseURL: ${JSON.stringify(origin)}, token: process.env.TOOLYARD_TOKEN });`,
        `const { result } = await client.executeTool(${JSON.stringify(tool)}, ${pretty(args)});`,
        "console.log(result);",
      ].join("\n");
    case "Python":
      return [
        "import os",
        "from mcp_client import MCPClient",
        "",
        `with MCPClient(base_url=${JSON.stringify(origin)}, token=os.environ["TOOLYARD_TOKEN"]) as client:`,
        `    response = client.execute_tool(${JSON.stringify(tool)}, ${indented(python(args))})`,
        `    print(response["result"])`,
      ].join("\n");
  }
}

/** Quotes a word for a POSIX shell. */
export function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Formats a JSON value as a Python literal. */
export function python(value: unknown, depth = 0): string {
  const pad = "    ".repeat(depth + 1);
  const end = "    ".repeat(depth);
  const exact = digits(value);
  if (exact !== undefined) return exact;
  if (value === null) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (Array.isArray(value)) {
    if (!value.length) return "[]";
    return `[\n${value.map((one) => `${pad}${python(one, depth + 1)},\n`).join("")}${end}]`;
  }
  if (typeof value === "object") {
    const entries = Object.entries(value);
    if (!entries.length) return "{}";
    return `{\n${entries.map(([key, one]) => `${pad}${JSON.stringify(key)}: ${python(one, depth + 1)},\n`).join("")}${end}}`;
  }
  return JSON.stringify(value);
}

function indented(text: string): string {
  return text.replaceAll("\n", "\n    ");
}
