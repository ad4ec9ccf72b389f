import { formatRoute, type Route } from "../../app/route";
import { jobStates, type JobCounts, type JobState } from "./types";

const countOf: Record<JobState, Exclude<keyof JobCounts, "isCapped">> = {
  QUEUED: "queued",
  RUNNING: "running",
  SUCCEEDED: "succeeded",
  FAILED: "failed",
  CANCELLED: "cancelled",
};
const cap = 10_000;

/** The list's filter: one link a state, with how many jobs there are in it. */
export function StateTabs({ route, counts }: { route: Route; counts: JobCounts | null }) {
  return (
    <nav className="tabs" aria-label="Filter by state">
      {[null, ...jobStates].map((state) => (
        <a
          key={state ?? "ALL"}
          href={formatRoute({ ...route, state, after: null })}
          aria-current={route.state === state ? "true" : undefined}
        >
          {state === null ? "All" : state.charAt(0) + state.slice(1).toLowerCase()}
          {state !== null && counts && <span className="count">{countText(counts, state)}</span>}
        </a>
      ))}
    </nav>
  );
}

/** "10,000+" where the server stopped counting; queued and running are always exact. */
function countText(counts: JobCounts, state: JobState): string {
  const count = counts[countOf[state]];
  const isExact = state === "QUEUED" || state === "RUNNING" || !counts.isCapped || count < cap;
  return count.toLocaleString("en") + (isExact ? "" : "+");
}
