/** Times as people read them. The server's clock made them; only "how long ago" compares them with this machine's. */
import { useEffect, useState } from "react";

const steps = [
  [60, "s"],
  [60, "min"],
  [24, "h"],
  [Infinity, "d"],
] as const;

/** "just now", "42 s ago", "3 min ago"; "in 5 min" for what is to come. */
export function relativeTime(iso: string, nowMs: number): string {
  const seconds = Math.round((nowMs - Date.parse(iso)) / 1000);
  if (Math.abs(seconds) < 5) return "just now";
  const text = largestUnit(Math.abs(seconds));
  return seconds > 0 ? `${text} ago` : `in ${text}`;
}

/** "1.2 s", "3 min 5 s", "2 h 10 min". */
export function duration(fromIso: string, toIso: string): string {
  const milliseconds = Math.max(0, Date.parse(toIso) - Date.parse(fromIso));
  const seconds = Math.floor(milliseconds / 1000);
  if (seconds < 10) return `${(milliseconds / 1000).toFixed(1)} s`;
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

function largestUnit(seconds: number): string {
  let amount = seconds;
  for (const [size, unit] of steps) {
    if (amount < size) return `${Math.floor(amount)} ${unit}`;
    amount /= size;
  }
  return "";
}

/** The time now, renewed every few seconds while the component is mounted. */
export function useNow(everyMs = 5_000): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => {
      setNow(Date.now());
    }, everyMs);
    return () => {
      clearInterval(timer);
    };
  }, [everyMs]);
  return now;
}
