/**
 * JSON that keeps every number as it was written. A number which a double cannot hold digit for digit (an integer above
 * 2^53, `1.0`, `1e400`) stays a LosslessNumber; all others are plain numbers, so typed fields can be used as they are.
 */
import { LosslessNumber, parse, stringify } from "lossless-json";

export type JsonValue =
  | null
  | boolean
  | number
  | string
  | LosslessNumber
  | JsonValue[]
  | { [key: string]: JsonValue };

function parseNumber(text: string): number | LosslessNumber {
  const value = Number(text);
  return String(value) === text ? value : new LosslessNumber(text);
}

export function parseJson(text: string): unknown {
  return parse(text, undefined, parseNumber);
}

export function formatJson(value: JsonValue): string {
  return stringify(value, undefined, 2) ?? "null";
}
