// Parses server-sent events from text in chunks of any size; a chunk may end between CR and LF.

export interface ServerEvent {
  id: string;
  event: string;
  data: string;
}

export class EventReader {
  /** The chunks of the incomplete line. */
  #line: string[] = [];
  #afterReturn = false;
  #id = "";
  #event = "";
  #data: string[] = [];

  /** Parses the next chunk and returns the events that it completes. */
  push(text: string): ServerEvent[] {
    const events: ServerEvent[] = [];
    let from = 0;
    if (this.#afterReturn && text.startsWith("\n")) from = 1;
    if (text.length > 0) this.#afterReturn = false;
    const ends = /\r\n|\r|\n/g;
    ends.lastIndex = from;
    for (let end = ends.exec(text); end !== null; end = ends.exec(text)) {
      this.#line.push(text.slice(from, end.index));
      const event = this.#take(this.#line.join(""));
      if (event) events.push(event);
      this.#line = [];
      from = ends.lastIndex;
      this.#afterReturn = end[0] === "\r" && from === text.length;
    }
    if (from < text.length) this.#line.push(text.slice(from));
    return events;
  }

  #take(line: string): ServerEvent | undefined {
    if (line === "") return this.#dispatch();
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    let value = colon < 0 ? "" : line.slice(colon + 1);
    if (value.startsWith(" ")) value = value.slice(1);
    if (field === "data") this.#data.push(value);
    else if (field === "event") this.#event = value;
    else if (field === "id" && !value.includes("\0")) this.#id = value;
    // Comments, which have an empty field name, and unknown fields are ignored.
    return undefined;
  }

  #dispatch(): ServerEvent | undefined {
    const [event, data] = [this.#event, this.#data];
    this.#event = "";
    this.#data = [];
    return data.length === 0 ? undefined : { id: this.#id, event: event || "message", data: data.join("\n") };
  }
}
