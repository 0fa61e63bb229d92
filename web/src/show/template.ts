// URI templates (RFC 6570), as far as needed to expand them.

const HOLE = /\{([+#./;?&]?)([^{}]+)\}/g;

/** Returns the names of the variables, without duplicates. */
export function variables(template: string): string[] {
  const names = new Set<string>();
  for (const match of template.matchAll(HOLE)) for (const name of match[2]!.split(",")) names.add(bare(name));
  return [...names];
}

function bare(name: string): string {
  return name.replace(/(\*|:\d+)$/, "").trim();
}

/** Expands a template; variables without a value are omitted. */
export function expand(template: string, values: Record<string, string>): string {
  return template.replace(HOLE, (_whole, operator: string, list: string) => {
    const given = list.split(",").map((name) => ({ name: bare(name), value: values[bare(name)] ?? "", cut: /:(\d+)$/.exec(name)?.[1] }));
    const filled = given.filter((one) => one.value !== "");
    if (!filled.length) return "";
    const open = operator === "+" || operator === "#";
    const words = filled.map(({ name, value, cut }) => {
      const text = cut ? value.slice(0, Number(cut)) : value;
      const encoded = open ? encodeURI(text) : encodeURIComponent(text);
      return operator === "?" || operator === "&" || operator === ";" ? `${name}=${encoded}` : encoded;
    });
    const [first, between] = { "": ["", ","], "+": ["", ","], "#": ["#", ","], ".": [".", "."], "/": ["/", "/"], ";": [";", ";"], "?": ["?", "&"], "&": ["&", "&"] }[operator] ?? ["", ","];
    return first + words.join(between);
  });
}
