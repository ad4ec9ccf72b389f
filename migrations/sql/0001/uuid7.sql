-- A version 7 UUID of the given instant: 48 bits of milliseconds, 12 bits of the millisecond's fraction, 62 random bits.
-- PostgreSQL has its own from 18 on only.
CREATE FUNCTION tenure_uuid7(p_at timestamptz) RETURNS uuid
LANGUAGE sql VOLATILE PARALLEL SAFE
AS $$
  SELECT (
      lpad(to_hex(us / 1000), 12, '0')
      || to_hex(28672 + (us % 1000) * 4096 / 1000)  -- 0x7000: the version
      || substr(replace(gen_random_uuid()::text, '-', ''), 17, 16)
    )::uuid
  FROM (SELECT (extract(epoch FROM p_at) * 1000000)::bigint AS us) AS clock
$$;
