import { expect, test } from "vitest";

import { snapshot } from "../../test/factories";
import { readOutcome, type CommandResult } from "./refusals";

const refusals: [CommandResult, string[]][] = [
  [
    {
      __typename: "AdmissionRejected",
      code: "ADMISSION_REJECTED",
      message: "Full.",
      limit: "PENDING_PER_ACTOR",
      queue: "admin",
      used: 3,
      max: 3,
      retryAfter: 30,
    },
    ["PENDING_PER_ACTOR in queue admin: 3 of 3 used.", "Try again in 30 s."],
  ],
  [
    { __typename: "RateLimited", code: "RATE_LIMITED", message: "Slow.", max: 10, windowSeconds: 60, wait: 5 },
    ["10 in 60 s are allowed.", "Try again in 5 s."],
  ],
  [
    { __typename: "InvalidInput", code: "INVALID_INPUT", message: "Bad.", fields: [{ path: ["id"], message: "odd" }] },
    ["id: odd"],
  ],
  [
    { __typename: "Forbidden", code: "FORBIDDEN", message: "No.", requiredRole: "OPERATOR" },
    ["It takes the role OPERATOR."],
  ],
  [{ __typename: "NotFound", code: "NOT_FOUND", message: "Gone." }, []],
];

test.each(refusals)("$0.__typename is put into words", (result, details) => {
  expect(readOutcome(result)).toMatchObject({ job: null, refusal: { details } });
});

test("a success has no refusal, and one that is not retryable shows the job", () => {
  const job = snapshot();
  expect(readOutcome({ __typename: "CancelJobPayload", job })).toEqual({ job, refusal: null });
  const moved: CommandResult = { __typename: "NotRetryable", code: "NOT_RETRYABLE", message: "It runs.", job };
  expect(readOutcome(moved)).toMatchObject({ job, refusal: { code: "NOT_RETRYABLE", message: "It runs." } });
});

test("an error that this page does not know is still shown", () => {
  const unknown = { __typename: "Novel", code: "NOVEL", message: "New." } as unknown as CommandResult;
  expect(readOutcome(unknown).refusal).toEqual({ code: "NOVEL", message: "New.", details: [] });
});
