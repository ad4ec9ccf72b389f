import { relativeTime, useNow } from "../lib/time";

/** An instant as its distance from now; the exact local and UTC time on hover. */
export function Time({ at }: { at: string }) {
  const now = useNow();
  return (
    <time dateTime={at} title={`${new Date(at).toLocaleString()} (${at})`}>
      {relativeTime(at, now)}
    </time>
  );
}
