-- Records the outcome of attempts, each only where its token is still the current one; else its status is LOST and nothing
-- of it is written. Waits for the rows' locks, in id order. Outcomes as in tenure_settle; status: the job's new state.
CREATE FUNCTION tenure_finish(
  p_jobs uuid[], p_tokens bigint[], p_outcomes text[], p_results text[], p_codes text[], p_messages text[],
  p_delays double precision[]
) RETURNS TABLE (job_id uuid, status text, version int)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off  -- a plan made while the table was small stays
AS $$
#variable_conflict use_column
DECLARE
  v_held int[];
BEGIN
  WITH held AS (
    SELECT u.n, j.fencing_token = u.token AND j.state = 'RUNNING' AS is_current
    FROM unnest(p_jobs, p_tokens) WITH ORDINALITY AS u(id, token, n) JOIN job AS j ON j.id = u.id
    ORDER BY j.id FOR UPDATE OF j
  )
  SELECT coalesce(array_agg(n::int ORDER BY n) FILTER (WHERE is_current), '{}') INTO v_held FROM held;
  RETURN QUERY
  WITH settled AS (
    SELECT s.* FROM tenure_settle(
      ARRAY(SELECT p_jobs[n] FROM unnest(v_held) AS n), ARRAY(SELECT p_outcomes[n] FROM unnest(v_held) AS n),
      ARRAY(SELECT p_results[n] FROM unnest(v_held) AS n), ARRAY(SELECT p_codes[n] FROM unnest(v_held) AS n),
      ARRAY(SELECT p_messages[n] FROM unnest(v_held) AS n), ARRAY(SELECT p_delays[n] FROM unnest(v_held) AS n)) AS s
  )
  SELECT u.id, coalesce(s.state, 'LOST'), s.version
  FROM unnest(p_jobs) WITH ORDINALITY AS u(id, n) LEFT JOIN settled AS s ON s.job_id = u.id ORDER BY u.n;
END
$$;
