-- Holds the job's row to the end of the transaction, if the token is still the current one; false where it is not.
-- A row lock, not a look: a look, or FOR KEY SHARE, lets a stale write pass.
CREATE FUNCTION tenure_fence(p_job uuid, p_token bigint) RETURNS boolean
LANGUAGE plpgsql
AS $$
BEGIN
  PERFORM 1 FROM job AS j WHERE j.id = p_job AND j.fencing_token = p_token AND j.state = 'RUNNING' FOR UPDATE;
  RETURN FOUND;
END
$$;
