-- Shares the installation's remaining capacity (it may be negative) evenly over the shards. The caller has locked all.
CREATE FUNCTION tenure_share_capacity(p_remaining bigint) RETURNS void
LANGUAGE sql
AS $$
  UPDATE admission_shard
  SET remaining = floor(p_remaining / 16.0)::bigint
    + CASE WHEN shard < p_remaining - 16 * floor(p_remaining / 16.0)::bigint THEN 1 ELSE 0 END
$$;
