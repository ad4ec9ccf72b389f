import { fireEvent, render, screen } from "@testing-library/react";
import { expect, test, vi } from "vitest";

import { parseJson, type JsonValue } from "../../lib/json";
import { ended, job, snapshot } from "../../test/factories";
import { JobPanel } from "./JobPanel";
import type { CommandOutcome, Job } from "./types";

const cancel = vi.fn<(id: string) => Promise<CommandOutcome>>();
const retry = vi.fn<(id: string, version: number) => Promise<CommandOutcome>>();
const onChange = vi.fn();

function show(change: Partial<Job>): void {
  render(<JobPanel api={{ cancel, retry }} job={job(change)} closeHref="#/" onChange={onChange} />);
}

test("progress is told by figures, to a screen reader too", () => {
  show({ progress: { total: 40, done: 11, succeeded: 8, skipped: 2, failed: 1, message: "Page 11" } });
  expect(screen.getByRole("progressbar").getAttribute("aria-valuetext")).toBe("11 of 40");
  expect(screen.getByText("27 %")).toBeTruthy();
  expect(screen.getByText("1 failed")).toBeTruthy();
  expect(screen.getByText("Page 11")).toBeTruthy();
  expect(screen.getByText("Job running, 20 per cent").getAttribute("aria-live")).toBe("polite");
});

test("large integers of params and result are shown digit for digit", () => {
  const params = parseJson('{"n": 9007199254740993}') as JsonValue;
  const result = parseJson('{"sum": 123456789012345678901234567890}') as JsonValue;
  show({ ...ended, params, result });
  expect(screen.getByLabelText("Params").textContent).toContain("9007199254740993");
  expect(screen.getByLabelText("Result").textContent).toContain("123456789012345678901234567890");
});

test("very long params are cut until asked for", () => {
  show({ params: "x".repeat(30_000) });
  expect(screen.getByLabelText("Params").textContent).toHaveLength(20_001);
  fireEvent.click(screen.getByRole("button", { name: /Show all/ }));
  expect(screen.getByLabelText("Params").textContent).toHaveLength(30_002);
});

test("errors and attempts are listed", () => {
  const error = { code: "page_conflict", message: "It was changed.", attempt: 1, at: job().createdAt, itemKey: "a.md" };
  const attempt = { number: 1, isCounted: false, owner: "w", startedAt: error.at, finishedAt: null, error };
  show({ errorCount: 70, errors: [error], attempts: [{ ...attempt, outcome: "RELEASED" }] });
  expect(screen.getByText("The newest 1 of 70.")).toBeTruthy();
  expect(screen.getByText("a.md")).toBeTruthy();
  expect(screen.getByText(/not counted/)).toBeTruthy();
});

test("cancel hands on the job that comes back", async () => {
  const cancelled = snapshot({ version: 6, cancelRequestedAt: job().createdAt });
  cancel.mockResolvedValue({ job: cancelled, refusal: null });
  show({});
  fireEvent.click(screen.getByRole("button", { name: "Cancel" }));
  await vi.waitFor(() => {
    expect(onChange).toHaveBeenCalledWith(cancelled);
  });
  expect(screen.queryByRole("button", { name: "Retry" })).toBeNull();
});

test("a refused retry names the version it was for, and is shown", async () => {
  retry.mockResolvedValue({ job: null, refusal: { code: "ADMISSION_REJECTED", message: "Full.", details: ["3 of 3"] } });
  show({ ...ended, state: "FAILED", version: 12 });
  fireEvent.click(screen.getByRole("button", { name: "Retry" }));
  expect((await screen.findByRole("alert")).textContent).toBe("ADMISSION_REJECTED Full.3 of 3");
  expect(retry).toHaveBeenCalledExactlyOnceWith(job().id, 12);
});

test("a job that succeeded offers neither", () => {
  show(ended);
  expect(screen.queryByRole("button")).toBeNull();
});
