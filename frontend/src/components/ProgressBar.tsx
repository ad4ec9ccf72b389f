import type { JobProgress } from "../features/jobs/types";

/** Succeeded, skipped and failed items as parts of one bar; of unknown length while no total is known. */
export function ProgressBar({ progress, label }: { progress: JobProgress; label: string }) {
  const { total, done, succeeded, skipped, failed } = progress;
  if (total === null) {
    return <div className="bar bar-unknown" role="progressbar" aria-label={label} aria-valuetext={`${done} done`} />;
  }
  const share = (count: number): string => `${total > 0 ? Math.min(100, (100 * count) / total) : 0}%`;
  return (
    <div
      className="bar"
      role="progressbar"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={total}
      aria-valuenow={Math.min(done, total)}
      aria-valuetext={`${done} of ${total}`}
    >
      <span className="part-succeeded" style={{ width: share(succeeded) }} />
      <span className="part-skipped" style={{ width: share(skipped) }} />
      <span className="part-failed" style={{ width: share(failed) }} />
    </div>
  );
}
