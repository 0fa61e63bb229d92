// Serves several OpenAPI documents with Prism in one process, because one process per document would take minutes to start.
// Usage: node prism.mjs FOLDER DOCUMENT…, where FOLDER contains node_modules. Prints one JSON line per document, with its URL
// or the reason why Prism cannot serve it.
import { createRequire } from "node:module";

const [folder, ...documents] = process.argv.slice(2);
const require = createRequire(`${folder}/`);
const { getHttpOperationsFromSpec } = require("@stoplight/prism-http");
const { createServer } = require("@stoplight/prism-http-server");
const { createLogger } = require("@stoplight/prism-core");

// The settings of `prism mock`, without response validation, which the clients do.
const config = {
  isProxy: false,
  checkSecurity: true,
  validateRequest: true,
  validateResponse: false,
  errors: false,
  mock: { dynamic: false, ignoreExamples: false },
};

// A crash in Prism must not affect the other documents. The request that caused it gets no response.
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
