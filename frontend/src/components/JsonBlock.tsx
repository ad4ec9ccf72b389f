import { useState } from "react";

import { formatJson, type JsonValue } from "../lib/json";

const shownLength = 20_000;

/** A JSON value as text, each number digit for digit; only the beginning of a very long one, until asked for the rest. */
export function JsonBlock({ label, value }: { label: string; value: JsonValue }) {
  const [isWhole, setIsWhole] = useState(false);
  const text = formatJson(value);
  const isCut = !isWhole && text.length > shownLength;
  return (
    <section className="json">
      <h3>{label}</h3>
      <pre tabIndex={0} aria-label={label}>
        {isCut ? `${text.slice(0, shownLength)}…` : text}
      </pre>
      {isCut && (
        <button
          type="button"
          onClick={() => {
            setIsWhole(true);
          }}
        >
          Show all {text.length.toLocaleString()} characters
        </button>
      )}
    </section>
  );
}
