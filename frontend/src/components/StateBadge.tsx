import type { JobState } from "../features/jobs/types";

/** A job's state by colour and by word; "Cancelling" is a running job that was asked to stop. */
export function StateBadge({ state, isCancelling = false }: { state: JobState; isCancelling?: boolean }) {
  const label = isCancelling ? "Cancelling" : state.charAt(0) + state.slice(1).toLowerCase();
  return <span className={`badge state-${state.toLowerCase()}`}>{label}</span>;
}
