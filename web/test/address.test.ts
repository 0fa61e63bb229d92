import { describe, expect, it } from "vitest";
import { filledIn, place, read, write } from "../src/address";

describe("the address", () => {
  it.each([
    ["", [], {}, null],
    ["#token=abc", [], {}, "abc"],
    ["#token=a%2Bb%3D", [], {}, "a+b="],
    ["#/tools/mcp__a__b?q=x", ["tools", "mcp__a__b"], { q: "x" }, null],
    ["#/tools/x?token=t&q=1", ["tools", "x"], { q: "1" }, "t"],
    ["#token=t&go=%2Fcalls%2F7%3Fstatus%3Dfailed", ["calls", "7"], { status: "failed" }, "t"],
    ["#token=t&go=//evil.example", ["evil.example"], {}, "t"],
    ["#/resources/s/file%3A%2F%2F%2Fa%20b", ["resources", "s", "file:///a b"], {}, null],
    ["#/%zz", ["%zz"], {}, null],
  ])("reads %s", (fragment, path, query, token) => {
    expect(read(fragment)).toEqual({ place: { path, query }, token });
  });

  it("writes what it reads", () => {
    const fragment = write(["resources", "a/b", "file:///ü?x=1#y"], { q: "a&b=c", none: undefined });
    expect(read(fragment).place).toEqual({ path: ["resources", "a/b", "file:///ü?x=1#y"], query: { q: "a&b=c" } });
  });

  it.each([
    [undefined, {}],
    ['{"city":"Paris","n":3,"o":{}}', { city: "Paris" }],
    ["[", {}],
    ["null", {}],
    ['"text"', {}],
  ])("fills in %s", (args, filled) => {
    place.query = args === undefined ? {} : { args };
    expect(filledIn()).toEqual(filled);
  });
});
