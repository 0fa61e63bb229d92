// Validates arguments in a worker, so that a slow pattern cannot block the page.

import { validate } from "./validate";

self.onmessage = (message: MessageEvent<{ id: number; schema: string; value: string }>) => {
  const { id, schema, value } = message.data;
  try {
    self.postMessage({ id, faults: validate(JSON.parse(schema), JSON.parse(value)) });
  } catch (error) {
    self.postMessage({ id, odd: error instanceof Error ? error.message : String(error) });
  }
};
