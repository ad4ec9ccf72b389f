import { useState } from "react";

import type { JobsApi } from "./api";
import { refusalOf } from "./refusals";
import type { CommandOutcome, JobSnapshot, Refusal } from "./types";

interface Props {
  api: Pick<JobsApi, "cancel" | "retry">;
  job: JobSnapshot;
  onChange: (job: JobSnapshot) => void;
}

/** Cancel and retry, where the job's state allows them. The server decides who may; its refusal is shown. */
export function JobActions({ api, job, onChange }: Props) {
  const [isBusy, setIsBusy] = useState(false);
  const [refusal, setRefusal] = useState<Refusal | null>(null);

  const carryOut = async (command: () => Promise<CommandOutcome>): Promise<void> => {
    setIsBusy(true);
    setRefusal(null);
    try {
      const outcome = await command();
      if (outcome.job) onChange(outcome.job);
      setRefusal(outcome.refusal);
    } catch (error) {
      setRefusal(refusalOf(error));
    } finally {
      setIsBusy(false);
    }
  };
  const isCancelling = job.cancelRequestedAt !== null;

  return (
    <div className="actions">
      {!job.isTerminal && (
        <button
          type="button"
          disabled={isBusy || isCancelling}
          onClick={() => void carryOut(() => api.cancel(job.id))}
        >
          {isCancelling ? "Cancel requested" : "Cancel"}
        </button>
      )}
      {(job.state === "FAILED" || job.state === "CANCELLED") && (
        <button
          type="button"
          disabled={isBusy}
          onClick={() => void carryOut(() => api.retry(job.id, job.version))}
        >
          Retry
        </button>
      )}
      {refusal && <RefusalNote refusal={refusal} />}
    </div>
  );
}

function RefusalNote({ refusal }: { refusal: Refusal }) {
  return (
    <div className="note note-error" role="alert">
      <p>
        <code>{refusal.code}</code> {refusal.message}
      </p>
      {refusal.details.map((detail) => (
        <p key={detail}>{detail}</p>
      ))}
    </div>
  );
}
