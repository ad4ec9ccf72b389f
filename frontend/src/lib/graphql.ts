/** GraphQL over HTTP: one typed call, and one error class that tells what a caller can do about a failure. */
import { parseJson } from "./json";

/** The text of an operation, with the types of what goes in and what comes out. */
export interface Operation<Data, Variables> {
  readonly text: string;
  /** Never set: it only carries the types. */
  readonly types?: (variables: Variables) => Data;
}

export function operation<Data, Variables>(text: string): Operation<Data, Variables> {
  return { text };
}

/** `OFFLINE` where no answer came; else the server's extensions.code, or `HTTP_<status>`. */
export class RequestError extends Error {
  readonly code: string;

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "RequestError";
    this.code = code;
  }

  /** The server cannot be reached, or says itself that it cannot answer now. */
  get isOffline(): boolean {
    return ["OFFLINE", "UNAVAILABLE", "HTTP_502", "HTTP_503", "HTTP_504"].includes(this.code);
  }

  get isUnauthenticated(): boolean {
    return this.code === "UNAUTHENTICATED" || this.code === "HTTP_401";
  }
}

export type Execute = <Data, Variables>(
  operation: Operation<Data, Variables>,
  variables: Variables,
  signal?: AbortSignal,
) => Promise<Data>;

interface Envelope {
  data?: unknown;
  errors?: { message: string; extensions?: { code?: unknown } }[];
}

const timeoutMs = 15_000;

export function graphqlUrl(): URL {
  return new URL("graphql", document.baseURI);
}

/** Any error in the answer rejects, also beside data: no operation of this page can use half an answer. */
export function createExecute(token: string): Execute {
  return async <Data, Variables>(
    { text }: Operation<Data, Variables>,
    variables: Variables,
    signal?: AbortSignal,
  ): Promise<Data> => {
    const { status, body } = await send(token, JSON.stringify({ query: text, variables }), signal);
    const { data, errors } = readEnvelope(status, body);
    const [first] = errors ?? [];
    if (first) {
      const code = first.extensions?.code;
      throw new RequestError(typeof code === "string" ? code : "INTERNAL", first.message);
    }
    if (data === undefined || data === null) {
      throw new RequestError(`HTTP_${status}`, `The server answered with status ${status} and no data.`);
    }
    // The server validates each operation against its schema; what it answers has the operation's shape.
    return data as Data;
  };
}

async function send(token: string, body: string, signal?: AbortSignal): Promise<{ status: number; body: string }> {
  const timeout = AbortSignal.timeout(timeoutMs);
  try {
    const response = await fetch(graphqlUrl(), {
      method: "POST",
      headers: {
        Accept: "application/graphql-response+json, application/json;q=0.9",
        Authorization: `Bearer ${token}`,
        "Content-Type": "application/json",
      },
      body,
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
    });
    return { status: response.status, body: await response.text() };
  } catch (cause) {
    throw new RequestError("OFFLINE", "The server does not answer.", { cause });
  }
}

function readEnvelope(status: number, body: string): Envelope {
  try {
    const parsed = parseJson(body);
    if (typeof parsed === "object" && parsed !== null) return parsed;
  } catch {
    // Not JSON, such as a proxy's error page: the status says what is known.
  }
  throw new RequestError(`HTTP_${status}`, `The server answered with status ${status}.`);
}
