-- Makes p_max (0: none) the installation's limit. What is pending keeps its place, also above the new limit.
CREATE FUNCTION tenure_set_installation_limit(p_max bigint) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
  v_old bigint;
  v_none CONSTANT bigint := 1000000000000;
BEGIN
  PERFORM 1 FROM installation WHERE max_pending = p_max;
  IF FOUND THEN
    RETURN;
  END IF;
  SELECT max_pending INTO v_old FROM installation FOR UPDATE;
  PERFORM 1 FROM admission_shard ORDER BY shard FOR UPDATE;
  PERFORM tenure_share_capacity(
    (SELECT sum(remaining) FROM admission_shard)::bigint
    + coalesce(nullif(p_max, 0), v_none) - coalesce(nullif(v_old, 0), v_none));
  UPDATE installation SET max_pending = p_max;
END
$$;
