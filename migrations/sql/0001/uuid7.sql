-- A version 7 UUID of the given instant: 48 bits of milliseconds, 12 bits of the millisecond's fraction, 62 random bits.
-- PostgreSQL has its own from 18 on only. One expression over bytes, so that the planner inlines it.
CREATE FUNCTION tenure_uuid7(p_at timestamptz) RETURNS uuid
LANGUAGE sql VOLATILE PARALLEL SAFE
AS $$
  SELECT encode(
    overlay(
      uuid_send(gen_random_uuid()) PLACING int8send(
        ((extract(epoch FROM p_at) * 1000000)::bigint / 1000 << 16)
        | 28672  -- 0x7000: the version
        | (extract(epoch FROM p_at) * 1000000)::bigint % 1000 * 4096 / 1000
      ) FROM 1 FOR 8),
    'hex')::uuid
$$;
