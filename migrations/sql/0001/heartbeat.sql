-- Extends the leases of all jobs of a process at once, and saves the progress given with one (null: nothing new).
-- A progress is {total, succeeded, skipped, failed, message}, absent keys stay. Only a progress makes a new version.
-- status: OK; LOST (the token is not the current one, or the job does not run); UNKNOWN (another holds the row: ask again).
CREATE FUNCTION tenure_heartbeat(p_jobs uuid[], p_tokens bigint[], p_progress text[], p_lease_seconds double precision)
RETURNS TABLE (job_id uuid, status text, cancel_requested boolean, version int)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off  -- a plan made while the table was small stays
AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
  WITH asked AS (
    SELECT u.id, u.token, u.progress::jsonb AS p FROM unnest(p_jobs, p_tokens, p_progress) AS u(id, token, progress)
  ), free AS (
    SELECT j.id, asked.p FROM asked JOIN job AS j ON j.id = asked.id
    -- Concatenated, so that the primary key is used and not the small index of running jobs, which is estimated at one
    -- row and would be walked once for each job asked.
    WHERE j.fencing_token = asked.token AND j.state || '' = 'RUNNING'
    ORDER BY j.id FOR UPDATE OF j SKIP LOCKED
  ), beaten AS (
    UPDATE job AS j SET
      heartbeat_at = clock_timestamp(),
      lease_expires_at = clock_timestamp() + p_lease_seconds * interval '1 second',
      version = j.version + CASE WHEN free.p IS NULL THEN 0 ELSE 1 END,
      progress_total = CASE WHEN free.p ? 'total' THEN (free.p ->> 'total')::int ELSE j.progress_total END,
      succeeded = coalesce((free.p ->> 'succeeded')::int, j.succeeded),
      skipped = coalesce((free.p ->> 'skipped')::int, j.skipped),
      failed = coalesce((free.p ->> 'failed')::int, j.failed),
      progress_message = CASE WHEN free.p ? 'message' THEN free.p ->> 'message' ELSE j.progress_message END
    FROM free WHERE j.id = free.id
    RETURNING j.id, j.cancel_requested_at, j.version
  )
  SELECT asked.id,
    CASE
      WHEN b.id IS NOT NULL THEN 'OK'
      WHEN j.fencing_token = asked.token AND j.state = 'RUNNING' THEN 'UNKNOWN'
      ELSE 'LOST'
    END,
    coalesce(b.cancel_requested_at, j.cancel_requested_at) IS NOT NULL,
    coalesce(b.version, j.version)
  FROM asked LEFT JOIN beaten AS b ON b.id = asked.id LEFT JOIN job AS j ON j.id = asked.id;
END
$$;
