-- Takes back up to p_limit jobs whose lease has expired. A row that somebody holds is passed over, and one that was
-- revived while this waited no longer fits the condition: the expiry and the token that are checked are the locked row's.
CREATE FUNCTION tenure_reclaim(p_limit int) RETURNS TABLE (job_id uuid, state text, version int)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
  v_ids uuid[];
BEGIN
  v_ids := ARRAY(
    SELECT j.id FROM job AS j
    WHERE j.state = 'RUNNING' AND j.lease_expires_at < clock_timestamp()
    ORDER BY j.workspace_id, j.queue, j.id LIMIT p_limit FOR UPDATE SKIP LOCKED  -- the order of job_running_idx
  );
  IF cardinality(v_ids) = 0 THEN
    RETURN;
  END IF;
  RETURN QUERY SELECT * FROM tenure_settle(
    v_ids,
    array_fill('LOST'::text, ARRAY[cardinality(v_ids)]),
    array_fill(NULL::text, ARRAY[cardinality(v_ids)]),
    array_fill('lease_expired'::text, ARRAY[cardinality(v_ids)]),
    array_fill('The worker that held the job stopped sending heartbeats.'::text, ARRAY[cardinality(v_ids)]),
    array_fill(0::double precision, ARRAY[cardinality(v_ids)]));
END
$$;
