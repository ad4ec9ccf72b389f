/** Says how fresh what the page shows can be. */
import type { Connection } from "../features/jobs/monitor";

const words: Record<Connection, { label: string; title: string }> = {
  connecting: { label: "Connecting", title: "Waiting for the server's first answer." },
  live: { label: "Live", title: "The open job's progress arrives over a stream as it happens." },
  polling: { label: "Polling", title: "There is no stream now: the page asks the server every two seconds." },
  offline: { label: "Offline", title: "The server does not answer. What you see may be old; the page keeps trying." },
  idle: { label: "Polling", title: "No open job is running; the list is read every two seconds." },
};

export function ConnectionBadge({ connection }: { connection: Connection }) {
  const { label, title } = words[connection];
  return (
    <span className={`badge connection connection-${connection}`} role="status" title={title}>
      <span className="dot" aria-hidden="true" />
      <span className="visually-hidden">Connection: </span>
      {label}
    </span>
  );
}
