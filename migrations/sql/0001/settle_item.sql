-- Records an item's outcome together with the job's counters: the new version, or null where the token is not the current
-- one. An item that has its outcome already keeps it, and counts once. Of failed items the first 1,000 keep code and message.
CREATE FUNCTION tenure_settle_item(p_job uuid, p_token bigint, p_position int, p_outcome text, p_code text, p_message text)
RETURNS int
LANGUAGE plpgsql
AS $$
DECLARE
  v_job job;
  v_key text;
BEGIN
  SELECT * INTO v_job FROM job AS j WHERE j.id = p_job AND j.fencing_token = p_token AND j.state = 'RUNNING' FOR UPDATE;
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  UPDATE job_item AS i SET
    outcome = p_outcome,
    code = CASE WHEN v_job.failed < 1000 THEN p_code END,
    message = CASE WHEN v_job.failed < 1000 THEN left(p_message, 500) END
  WHERE i.job_id = p_job AND i.position = p_position AND i.outcome IS NULL
  RETURNING i.key INTO v_key;
  IF NOT FOUND THEN
    RETURN v_job.version;
  END IF;
  UPDATE job AS j SET
    version = j.version + 1,
    succeeded = j.succeeded + (p_outcome = 'SUCCEEDED')::int,
    skipped = j.skipped + (p_outcome = 'SKIPPED')::int,
    failed = j.failed + (p_outcome = 'FAILED')::int,
    error_count = j.error_count + (p_outcome = 'FAILED')::int,
    errors = CASE WHEN p_outcome = 'FAILED'
      THEN tenure_append_error(j.errors, clock_timestamp(), p_token, p_code, p_message, v_key) ELSE j.errors END
  WHERE j.id = p_job;
  RETURN v_job.version + 1;
END
$$;
