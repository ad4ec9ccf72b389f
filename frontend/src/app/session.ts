/**
 * The bearer token of this tab. It comes from the sign-in form or from a link that ends in `#token=…`, lives in
 * sessionStorage, and never stays in the address bar.
 */
import { decodePart } from "./route";

const storageKey = "tenure.token";
const tokenLink = /^#token=([^&]+)/;

export function readToken(): string | null {
  return takeTokenFromAddress() ?? sessionStorage.getItem(storageKey);
}

export function saveToken(token: string): void {
  sessionStorage.setItem(storageKey, token);
}

export function forgetToken(): void {
  sessionStorage.removeItem(storageKey);
}

/** Calls back when a link with a token is opened in this very tab. */
export function onTokenInAddress(listener: (token: string) => void): () => void {
  const look = (): void => {
    const token = takeTokenFromAddress();
    if (token !== null) listener(token);
  };
  window.addEventListener("hashchange", look);
  return () => {
    window.removeEventListener("hashchange", look);
  };
}

/** True for the moment in which a link with a token was opened and has not been read yet. */
export function hasTokenInAddress(): boolean {
  return tokenLink.test(window.location.hash);
}

function takeTokenFromAddress(): string | null {
  const match = tokenLink.exec(window.location.hash);
  if (!match?.[1]) return null;
  const token = decodePart(match[1]);
  saveToken(token);
  history.replaceState(null, "", window.location.pathname + window.location.search);
  return token;
}
