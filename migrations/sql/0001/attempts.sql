-- The newest 50 attempts of a job, oldest first. Stable: it reads with the snapshot of the statement that calls it.
-- PL/pgSQL, which keeps its plan: before PostgreSQL 18 an SQL function is planned anew by every statement.
CREATE FUNCTION tenure_attempts(p_job uuid) RETURNS jsonb
LANGUAGE plpgsql STABLE PARALLEL SAFE
AS $$
BEGIN
  RETURN (
    SELECT coalesce(jsonb_agg(to_jsonb(a) - 'job_id' ORDER BY a.fencing_token), '[]')
    FROM (
      SELECT * FROM job_attempt WHERE job_id = p_job ORDER BY fencing_token DESC LIMIT 50
    ) AS a
  );
END
$$;
