/** The typed errors of the job commands: which fields to ask for, and how each is put into words. */
import type { CommandOutcome, JobSnapshot, Refusal } from "./types";

interface ErrorFields {
  code: string;
  message: string;
}

interface AdmissionRejected extends ErrorFields {
  __typename: "AdmissionRejected";
  limit: string;
  queue: string | null;
  used: number;
  max: number;
  retryAfter: number | null;
}

interface RateLimited extends ErrorFields {
  __typename: "RateLimited";
  max: number;
  windowSeconds: number;
  wait: number;
}

interface InvalidInput extends ErrorFields {
  __typename: "InvalidInput";
  fields: { path: string[]; message: string }[];
}

interface Forbidden extends ErrorFields {
  __typename: "Forbidden";
  requiredRole: string | null;
}

export type CommandResult =
  | { __typename: "CancelJobPayload" | "RetryJobPayload"; job: JobSnapshot }
  | (ErrorFields & { __typename: "NotRetryable"; job: JobSnapshot })
  | (ErrorFields & { __typename: "NotFound" })
  | AdmissionRejected
  | RateLimited
  | InvalidInput
  | Forbidden;

// The two waits differ in nullability, so that they cannot share one name in an answer.
const fieldsOf = {
  AdmissionRejected: "limit queue used max retryAfter: retryAfterSeconds",
  RateLimited: "max windowSeconds wait: retryAfterSeconds",
  InvalidInput: "fields { path message }",
  Forbidden: "requiredRole",
};

/** Selects code and message of every error, known or not, and what those named here say beyond. */
export function refusalFields(...types: (keyof typeof fieldsOf)[]): string {
  const known = types.map((type) => `... on ${type} { ${fieldsOf[type]} }`);
  return ["... on Error { code message }", ...known].join("\n      ");
}

export function readOutcome(result: CommandResult): CommandOutcome {
  const job = "job" in result ? result.job : null;
  if (!("code" in result)) return { job, refusal: null };
  return { job, refusal: { code: result.code, message: result.message, details: describe(result) } };
}

export function refusalOf(error: unknown): Refusal {
  const message = error instanceof Error ? error.message : String(error);
  const code = error instanceof Error && "code" in error ? String(error.code) : "INTERNAL";
  return { code, message, details: [] };
}

function describe(result: Exclude<CommandResult, { __typename: "CancelJobPayload" | "RetryJobPayload" }>): string[] {
  switch (result.__typename) {
    case "AdmissionRejected": {
      const where = result.queue === null ? "" : ` in queue ${result.queue}`;
      const use = `${result.limit}${where}: ${result.used} of ${result.max} used.`;
      return result.retryAfter === null ? [use] : [use, `Try again in ${result.retryAfter} s.`];
    }
    case "RateLimited":
      return [`${result.max} in ${result.windowSeconds} s are allowed.`, `Try again in ${result.wait} s.`];
    case "InvalidInput":
      return result.fields.map(({ path, message }) => `${path.join(".")}: ${message}`);
    case "Forbidden":
      return result.requiredRole === null ? [] : [`It takes the role ${result.requiredRole}.`];
    default:
      return [];
  }
}
