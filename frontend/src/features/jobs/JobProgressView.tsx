import { ProgressBar } from "../../components/ProgressBar";
import type { JobSnapshot } from "./types";

/** The bar, the counts behind it and the handler's own words; told to screen readers in steps of ten per cent. */
export function JobProgressView({ job }: { job: JobSnapshot }) {
  const { progress, state } = job;
  const { total, done } = progress;
  const percent = total === null || total === 0 ? null : Math.floor((100 * done) / total);
  const isShown = total !== null || done > 0 || state === "RUNNING";
  return (
    <section aria-label="Progress">
      {isShown && (
        <>
          <div className="progress-line">
            <strong>{percent === null ? `${done} done` : `${percent} %`}</strong>
            <span className="figures">{total === null ? "total not known yet" : `${done} of ${total}`}</span>
          </div>
          <ProgressBar progress={progress} label="Progress of this job" />
          <ul className="legend">
            <li className="key-succeeded">{progress.succeeded} succeeded</li>
            <li className="key-skipped">{progress.skipped} skipped</li>
            <li className="key-failed">{progress.failed} failed</li>
          </ul>
        </>
      )}
      {progress.message !== null && <p className="message">{progress.message}</p>}
      <p className="visually-hidden" aria-live="polite">
        {spoken(job, percent)}
      </p>
    </section>
  );
}

function spoken(job: JobSnapshot, percent: number | null): string {
  const state = job.state.toLowerCase();
  if (job.isTerminal || percent === null) return `Job ${state}`;
  return `Job ${state}, ${Math.floor(percent / 10) * 10} per cent`;
}
