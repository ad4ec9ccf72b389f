/**
 * Repeats a task: one run at a time, none while the tab is hidden, at once when it is shown again or when the machine
 * is back online.
 */

/** Does its work, handles its own errors, and says how many milliseconds to wait; null waits for `runSoon`. */
export type PollTask = (signal: AbortSignal) => Promise<number | null>;

export interface Polling {
  /** Runs after a moment; several calls are one run. */
  runSoon(): void;
  stop(): void;
}

const soonMs = 200;

export function startPolling(task: PollTask): Polling {
  const stopped = new AbortController();
  const { signal } = stopped;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isRunning = false;
  let isDue = false;

  const takeDue = (): boolean => {
    const wasDue = isDue;
    isDue = false;
    return wasDue;
  };

  const schedule = (delayMs: number): void => {
    clearTimeout(timer);
    timer = setTimeout(run, delayMs);
  };

  const finish = (delayMs: number | null): void => {
    isRunning = false;
    if (signal.aborted) return;
    const nextMs = takeDue() ? soonMs : delayMs;
    if (nextMs !== null) schedule(nextMs);
  };

  function run(): void {
    if (signal.aborted) return;
    if (isRunning || document.hidden) {
      isDue = true;
      return;
    }
    clearTimeout(timer);
    isRunning = true;
    isDue = false;
    void task(signal).then(finish);
  }

  document.addEventListener(
    "visibilitychange",
    () => {
      if (!document.hidden && isDue) run();
    },
    { signal },
  );
  window.addEventListener("online", run, { signal });
  run();

  return {
    runSoon() {
      if (isRunning) isDue = true;
      else schedule(soonMs);
    },
    stop() {
      clearTimeout(timer);
      stopped.abort();
    },
  };
}
