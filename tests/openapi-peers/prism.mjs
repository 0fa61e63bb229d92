// Serves OpenAPI documents with Prism, all of them in this one process: one for each would take minutes to start.
// Usage: node prism.mjs FOLDER DOCUMENT…, where FOLDER is the one that has node_modules. One JSON line for each document,
// with its address or with why Prism cannot serve it.
import { createRequire } from "node:module";

const [folder, ...documents] = process.argv.slice(2);
const require = createRequire(`${folder}/`);
const { getHttpOperationsFromSpec } = require("@stoplight/prism-http");
const { createServer } = require("@stoplight/prism-http-server");
const { createLogger } = require("@stoplight/prism-core");

// As `prism mock` has it, but for the check of its own answers: the clients check them.
const config = {
  isProxy: false,
  checkSecurity: true,
  validateRequest: true,
  validateResponse: false,
  errors: false,
  mock: { dynamic: false, ignoreExamples: false },
};

// What Prism trips over must not take the other documents along; the request it was for is not answered.
for (const what of ["uncaughtException", "unhandledRejection"]) process.on(what, (error) => console.error(what, error));

for (const document of documents) {
  try {
    const operations = await getHttpOperationsFromSpec(document);
    if (operations.length === 0) throw new Error("no operations found in the document");
    const logger = createLogger("prism", { level: "silent" });
    const server = createServer(operations, { cors: false, config, components: { logger } });
    const url = await server.listen(0, "127.0.0.1");
    console.log(JSON.stringify({ document, url }));
  } catch (error) {
    console.log(JSON.stringify({ document, error: String(error.message).slice(0, 300) }));
  }
}
