import { expect, test } from "vitest";

import { formatJson, parseJson, type JsonValue } from "./json";

const roundTrip = (text: string): string => formatJson(parseJson(text) as JsonValue);

test.each(["9007199254740993", "-123456789012345678901234567890", "1.0", "1e400", "0.1", "-0", "null", '"9"'])(
  "%s comes back digit for digit",
  (text) => {
    expect(roundTrip(text)).toBe(text);
  },
);

test("numbers that a double holds are plain numbers", () => {
  expect(parseJson('{"version": 7, "total": 12.5}')).toEqual({ version: 7, total: 12.5 });
});

test("large integers survive deep inside, and keys that are special to JavaScript too", () => {
  expect(roundTrip('{"a":[{"__proto__":9007199254740993}]}')).toContain('"__proto__": 9007199254740993');
});
