/**
 * Subscriptions over graphql-transport-ws. A broken stream is reported at once and never repaired here: the caller
 * falls back to polling, shows so, and subscribes again when it wants to.
 */
import { createClient, type Client } from "graphql-ws";

import { graphqlUrl, type Operation } from "./graphql";

export interface Sink<Data> {
  next(data: Data): void;
  /** The server ended the stream as it should. */
  complete(): void;
  /** The stream ended in any other way: refused, closed, or silent for too long. */
  broken(): void;
}

/** Returns the function that ends the subscription; after it, the sink is called no more. */
export type Subscribe = <Data, Variables>(
  operation: Operation<Data, Variables>,
  variables: Variables,
  sink: Sink<Data>,
) => () => void;

const keepAliveMs = 10_000;
const pongTimeoutMs = 5_000;

export function createSubscribe(token: string): Subscribe {
  const client = createLiveClient(token);
  return <Data, Variables>(
    { text }: Operation<Data, Variables>,
    variables: Variables,
    sink: Sink<Data>,
  ): (() => void) => {
    let isOver = false;
    const end = (report?: () => void): void => {
      if (isOver) return;
      isOver = true;
      forget();
      unsubscribe();
      report?.();
    };
    const broken = (): void => {
      end(() => {
        sink.broken();
      });
    };
    // The client reconnects by itself after a close with code 1000; here every close counts as a break.
    const forget = client.on("closed", broken);
    const unsubscribe = client.subscribe<Data>(
      { query: text, variables: variables as Record<string, unknown> },
      {
        next: ({ data, errors }) => {
          if (isOver) return;
          if (errors || !data) broken();
          else sink.next(data);
        },
        error: broken,
        complete: () => {
          end(() => {
            sink.complete();
          });
        },
      },
    );
    return () => {
      end();
    };
  };
}

/** One socket for all subscriptions, opened by the first and closed a little after the last. */
function createLiveClient(token: string): Client {
  const url = graphqlUrl();
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  let pongTimer: ReturnType<typeof setTimeout> | undefined;
  const client = createClient({
    url: url.href,
    connectionParams: { Authorization: `Bearer ${token}` },
    connectionAckWaitTimeout: pongTimeoutMs,
    keepAlive: keepAliveMs,
    lazyCloseTimeout: 3_000,
    retryAttempts: 0,
    on: {
      // A half-open connection never closes by itself: no pong in time means that it is gone.
      ping: (isReceived) => {
        if (isReceived) return;
        clearTimeout(pongTimer);
        pongTimer = setTimeout(() => {
          client.terminate();
        }, pongTimeoutMs);
      },
      pong: (isReceived) => {
        if (isReceived) clearTimeout(pongTimer);
      },
      closed: () => {
        clearTimeout(pongTimer);
      },
    },
  });
  return client;
}
