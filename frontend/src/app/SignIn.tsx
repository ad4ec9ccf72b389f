import { useId, useState } from "react";

interface Props {
  /** Why the visitor is asked (again). */
  reason: string | null;
  onToken: (token: string) => void;
}

export function SignIn({ reason, onToken }: Props) {
  const id = useId();
  const [token, setToken] = useState("");
  return (
    <main className="sign-in">
      <h1>Tenure</h1>
      {reason !== null && (
        <p className="note note-error" role="alert">
          {reason}
        </p>
      )}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (token.trim() !== "") onToken(token.trim());
        }}
      >
        <label htmlFor={id}>Access token</label>
        <input
          id={id}
          type="password"
          autoComplete="off"
          spellCheck={false}
          required
          value={token}
          onChange={(event) => {
            setToken(event.target.value);
          }}
        />
        <p className="muted">
          <code>tenure token create</code> prints one. It stays in this tab and is forgotten when you close it.
        </p>
        <button type="submit" className="primary">
          Sign in
        </button>
      </form>
    </main>
  );
}
