-- Takes up to p_need places of the installation's capacity and returns how many it got. The last lock of any transaction.
-- One shard with room is the rule; all are locked, in order, only where none has enough, and are then shared out anew.
CREATE FUNCTION tenure_take_capacity(p_need bigint) RETURNS bigint
LANGUAGE plpgsql
AS $$
DECLARE
  v_left bigint;
  v_taken bigint;
BEGIN
  IF p_need <= 0 THEN
    RETURN 0;
  END IF;
  -- The try stands in a subtransaction: a row that failed its re-check stays locked, and waiting for all the others in
  -- order while holding it would deadlock.
  BEGIN
    UPDATE admission_shard SET remaining = remaining - p_need
    WHERE shard = (
      SELECT shard FROM admission_shard WHERE remaining >= p_need
      ORDER BY (shard + pg_backend_pid()) % 16 LIMIT 1 FOR UPDATE SKIP LOCKED
    );
    IF NOT FOUND THEN
      RAISE EXCEPTION 'no shard has room' USING ERRCODE = 'TN001';
    END IF;
    RETURN p_need;
  EXCEPTION WHEN SQLSTATE 'TN001' THEN
    NULL;
  END;
  PERFORM 1 FROM admission_shard ORDER BY shard FOR UPDATE;
  SELECT sum(remaining) INTO v_left FROM admission_shard;
  v_taken := least(p_need, greatest(v_left, 0));
  IF v_taken > 0 THEN
    PERFORM tenure_share_capacity(v_left - v_taken);
  END IF;
  RETURN v_taken;
END
$$;
