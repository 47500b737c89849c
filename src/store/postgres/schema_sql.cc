// The SQL of the store: what stands in the schema. `$S` is the schema's name, quoted.
//
// No lease rule in here: a commit compares versions and timers, and writes. Every statement of
// commit() is there for one of these reasons:
//
//  - Rows are locked in key order and each is judged when it is locked; nothing is written before
//    all are: no deadlock, and what was judged is what is overwritten. (So the moments of judging
//    differ if a lock was waited for; a row that was judged cannot change any more.) A check takes
//    FOR KEY SHARE, a write FOR UPDATE: checks of one record do not wait for each other, and a
//    guard that holds FOR SHARE on a row stops nobody who only checks it.
//  - A row that is not there cannot be locked. Its absence is: by inserting it, for good or (for a
//    check or a removal) to delete it in the same transaction. Who inserts the same key meanwhile
//    waits; who was first makes the other's insert do nothing, and that one starts over (sqlstate
//    STR01).
//  - A phase that locks rows may wait for one that inserts, never the other way round; each goes in
//    key order. So no circle of waiters can form.
//  - A number of the sequence, and a transaction's own number, can come again after a crash that
//    took commits that were not synced, and in a restored copy. `mark` is an unlogged table: empty
//    after any crash; and it names the start of the server, and the file of the table that it
//    speaks of: a dump that is read back makes another, also while the server runs on. Without its
//    row the first commit begins a new epoch, synced, and moves the sequence on, beyond the clock:
//    no version that a holder has seen in what was replaced comes again, however old the dump is.
//  - What all check and hardly anybody writes (kHardlyWritten of the seam) would be one row that
//  all
//    lock. A plain statement (plain_commit.cc) reads it without a lock, while it holds ACCESS SHARE
//    on the table `mark`, the gate, since before its snapshot; a writer holds ACCESS EXCLUSIVE. So
//    what was read stands until the reader has committed. The gate is taken before any row.
//  - The revision is a sequence of its own and is not moved on: it tells a restored copy by being
//    lower than what was seen.
#include "store/postgres/schema.h"

namespace stint::store::postgres {

const char* const kTables = R"sql(
CREATE TABLE $S.meta (
  product text NOT NULL CHECK (product = 'stint'),
  version integer NOT NULL,
  epoch integer NOT NULL
);
INSERT INTO $S.meta VALUES ('stint', 1, 0);
CREATE TABLE $S.record (
  key bytea PRIMARY KEY,
  value bytea NOT NULL,
  version bigint NOT NULL,
  at timestamptz NOT NULL,
  fires_at timestamptz,
  ttl_ms bigint,
  epoch integer,
  xid bigint,
  nth bigint
) WITH (fillfactor = 80);
CREATE SEQUENCE $S.version;
SELECT pg_catalog.nextval('$S.version');
CREATE SEQUENCE $S.revision;
SELECT pg_catalog.nextval('$S.revision');
CREATE SEQUENCE $S.nth;
CREATE UNLOGGED TABLE $S.mark (
  started timestamptz NOT NULL, home bigint NOT NULL, epoch integer NOT NULL
);
CREATE UNLOGGED TABLE $S.waiter (key bytea, pid integer, PRIMARY KEY (key, pid));
COMMENT ON TABLE $S.meta IS 'Stint: version of this schema; epoch grows with each start of the server';
COMMENT ON TABLE $S.record IS 'Stint: all records. Read stint.leases and stint.events instead; do not write';
COMMENT ON TABLE $S.mark IS 'Stint: empty after a crash, on purpose';
COMMENT ON TABLE $S.waiter IS 'Stint: who is to be notified of a change';
)sql";

const char* const kFunctions = R"sql(
CREATE OR REPLACE FUNCTION $S.current_epoch() RETURNS integer LANGUAGE plpgsql AS $f$
DECLARE
  file CONSTANT bigint := pg_relation_filenode('$S.record');
  found integer;
BEGIN
  SELECT m.epoch INTO found FROM $S.mark m
   WHERE m.started = pg_postmaster_start_time() AND m.home = file;
  IF found IS NOT NULL THEN
    RETURN found;
  END IF;
  LOCK TABLE $S.mark IN EXCLUSIVE MODE;
  -- Somebody else may have been quicker.
  SELECT m.epoch INTO found FROM $S.mark m
   WHERE m.started = pg_postmaster_start_time() AND m.home = file;
  IF found IS NOT NULL THEN
    RETURN found;
  END IF;
  UPDATE $S.meta SET epoch = epoch + 1 RETURNING epoch INTO found;
  PERFORM setval('$S.version', greatest(nextval('$S.version') + 1048576,
    (extract(epoch FROM clock_timestamp()) * 1000000)::bigint));
  DELETE FROM $S.mark;
  INSERT INTO $S.mark VALUES (pg_postmaster_start_time(), file, found);
  PERFORM set_config('stint.epoch_begun', txid_current()::text, true);
  RETURN found;
END $f$;

CREATE OR REPLACE FUNCTION $S.commit(
  wait_ms integer, sync text, known_mark bigint, places smallint[], kinds smallint[], keys bytea[],
  expected bigint[], demands smallint[], contents bytea[], timers smallint[], ttls bigint[],
  changing bytea[],
  OUT conflict integer, OUT had bigint[], OUT judged_at timestamptz, OUT given bigint,
  OUT revision bigint, OUT mark bigint, OUT marked bytea[], OUT own_xid bigint)
LANGUAGE plpgsql AS $f$
#variable_conflict use_variable
DECLARE
  updates integer; inserts integer; deletes integer; done integer;
  home bigint; epoch integer; asked boolean := false; each bytea;
  first_end timestamptz; runs integer;
BEGIN
  IF wait_ms IS NOT NULL THEN
    -- Through a pooler, where a session's own settings do not hold.
    PERFORM set_config('lock_timeout', wait_ms::text, true),
            set_config('plan_cache_mode', 'force_generic_plan', true),
            set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
            set_config('enable_mergejoin', 'off', true), set_config('jit', 'off', true);
  END IF;
  -- What the caller knows of the epoch counts for the file that it was told of.
  mark := known_mark;
  IF changing IS NOT NULL THEN
    -- Who writes what all check goes through the gate alone, before anything is read or locked.
    FOREACH each IN ARRAY changing LOOP
      IF substr(each, 1, 5) = 'meta/' THEN
        LOCK TABLE $S.mark IN ACCESS EXCLUSIVE MODE;
      END IF;
    END LOOP;
    home := pg_relation_filenode('$S.record');
    IF known_mark >> 32 = home THEN
      epoch := known_mark & 4294967295;
    ELSE
      -- Before any record is locked: this may wait for others that do the same.
      epoch := $S.current_epoch();
      asked := true;
      mark := home << 32 | epoch;
    END IF;
  END IF;
  -- Lock in key order, judge each when it is locked.
  SELECT array_agg(coalesce(w.version, c.version, 0)),
         min(k.place) FILTER (WHERE k.expect <> coalesce(w.version, c.version, 0) AND k.expect >= 0
           OR k.demand >= 0 AND k.demand <> CASE
                WHEN w.fires_at IS NULL AND c.fires_at IS NULL THEN 0
                WHEN greatest(clock_timestamp(), w.at, c.at) < coalesce(w.fires_at, c.fires_at)
                  THEN 1 ELSE 2 END
           OR k.kind = 2 AND w.version IS NULL),
         count(*) FILTER (WHERE w.version IS NOT NULL AND k.kind < 3),
         count(*) FILTER (WHERE k.kind = 4 OR w.version IS NULL AND c.version IS NULL
           AND (k.kind IN (1, 2, 3) OR k.kind = 0 AND (k.expect >= 0 OR k.demand >= 0))),
         count(*) FILTER (WHERE k.kind = 3 OR k.kind = 0 AND c.version IS NULL
           AND (k.expect >= 0 OR k.demand >= 0)),
         min(coalesce(w.fires_at, c.fires_at)) FILTER (WHERE k.demand = 1),
         min(k.place) FILTER (WHERE k.demand = 1)
    INTO had, conflict, updates, inserts, deletes, first_end, runs
    FROM unnest(places, kinds, keys, expected, demands) AS k (place, kind, key, expect, demand)
    LEFT JOIN LATERAL (SELECT r.version, r.at, r.fires_at FROM $S.record r
      WHERE r.key = k.key AND k.kind IN (1, 2, 3) FOR UPDATE) w ON true
    LEFT JOIN LATERAL (SELECT r.version, r.at, r.fires_at FROM $S.record r
      WHERE r.key = k.key AND k.kind IN (0, 5) FOR KEY SHARE) c ON true;
  judged_at := clock_timestamp();
  -- What ran when it was locked may have run out while a later row was waited for.
  IF conflict IS NULL AND judged_at >= first_end THEN
    conflict := runs;
  END IF;
  -- An epoch is begun for good, whatever this commit is.
  IF asked AND current_setting('stint.epoch_begun', true) = txid_current()::text THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  ELSIF conflict IS NOT NULL THEN
    PERFORM set_config('synchronous_commit', 'off', true);
  ELSIF sync IS NOT NULL THEN
    PERFORM set_config('synchronous_commit', sync, true);
  END IF;
  IF conflict IS NOT NULL THEN
    RETURN;
  END IF;
  IF changing IS NOT NULL THEN
    given := nextval('$S.version');
    revision := nextval('$S.revision');
  END IF;
  IF updates > 0 THEN
    UPDATE $S.record r
       SET value = CASE WHEN s.kind = 1 THEN s.content ELSE r.value END,
           version = CASE WHEN s.kind = 1 THEN given ELSE r.version END,
           at = CASE WHEN s.timer = 0 THEN greatest(judged_at, r.at) ELSE judged_at END,
           fires_at = CASE s.timer WHEN 0 THEN r.fires_at WHEN 1 THEN NULL
             WHEN 2 THEN judged_at + s.ttl * interval '1 millisecond'
             -- What is left is carried over to the clock as it is now, should it have been set back.
             ELSE judged_at + greatest(r.fires_at - greatest(judged_at, r.at),
                                       s.ttl * interval '1 millisecond') END,
           ttl_ms = CASE s.timer WHEN 0 THEN r.ttl_ms WHEN 1 THEN NULL WHEN 2 THEN s.ttl
             ELSE CASE WHEN r.fires_at - greatest(judged_at, r.at) > s.ttl * interval '1 millisecond'
                       THEN r.ttl_ms ELSE s.ttl END END
      FROM unnest(keys, kinds, contents, timers, ttls, had)
             AS s (key, kind, content, timer, ttl, had)
     WHERE r.key = s.key AND s.kind IN (1, 2) AND s.had > 0;
  END IF;
  IF inserts > 0 THEN
    INSERT INTO $S.record (key, value, version, at, fires_at, ttl_ms, epoch, xid, nth)
      SELECT CASE WHEN s.kind < 4 THEN s.key ELSE s.key || convert_to(
               lpad(epoch::text, 5, '0') || lpad(txid_current()::text, 14, '0')
                 || lpad(s.place::text, 2, '0'), 'UTF8') END,
             s.content, coalesce(given, 1), judged_at,
             CASE WHEN s.timer = 2 THEN judged_at + s.ttl * interval '1 millisecond' END,
             CASE WHEN s.timer = 2 THEN s.ttl END,
             CASE WHEN s.kind = 4 THEN epoch END,
             CASE WHEN s.kind = 4 THEN txid_current() END,
             CASE WHEN s.kind = 4 THEN nextval('$S.nth') END
        FROM unnest(places, kinds, keys, expected, demands, contents, timers, ttls, had)
               AS s (place, kind, key, expect, demand, content, timer, ttl, had)
       WHERE s.kind = 4 OR s.had = 0
         AND (s.kind IN (1, 2, 3) OR s.kind = 0 AND (s.expect >= 0 OR s.demand >= 0))
      ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS done = ROW_COUNT;
    IF done <> inserts THEN
      RAISE EXCEPTION 'a record appeared meanwhile' USING ERRCODE = 'STR01';
    END IF;
    -- It may have waited for who was inserting the same and did not in the end.
    IF clock_timestamp() >= first_end THEN
      RAISE EXCEPTION 'a timer ran out meanwhile' USING ERRCODE = 'STR01';
    END IF;
  END IF;
  IF deletes > 0 THEN
    DELETE FROM $S.record r
     USING unnest(kinds, keys, expected, demands, had) AS s (kind, key, expect, demand, had)
     WHERE r.key = s.key AND (s.kind = 3
       OR s.had = 0 AND s.kind = 0 AND (s.expect >= 0 OR s.demand >= 0));
  END IF;
  -- After all locks: a waiter that is not seen here sees this transaction (listener.h).
  IF changing IS NOT NULL AND EXISTS (SELECT FROM $S.waiter w WHERE w.key = ANY (changing)) THEN
    own_xid := txid_current();
    SELECT array_agg(DISTINCT w.key) INTO marked FROM $S.waiter w WHERE w.key = ANY (changing);
  END IF;
END $f$;

CREATE OR REPLACE FUNCTION $S.marked(changing bytea[], OUT marked bytea[])
LANGUAGE plpgsql AS $f$
BEGIN
  SELECT array_agg(DISTINCT w.key) INTO marked FROM $S.waiter w WHERE w.key = ANY (changing);
END $f$;

CREATE OR REPLACE FUNCTION $S.wake(changed bytea[], writer bigint) RETURNS void
LANGUAGE plpgsql AS $f$
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  DELETE FROM $S.waiter w WHERE w.key = ANY (changed)
    AND NOT EXISTS (SELECT FROM pg_stat_get_activity(w.pid));
  PERFORM pg_notify('stint_' || w.pid, encode(w.key, 'hex') || ' ' || writer)
    FROM $S.waiter w WHERE w.key = ANY (changed);
END $f$;
)sql";

// For people only. The layout of the values is that of service/records.h.
const char* const kViews = R"sql(
CREATE OR REPLACE VIEW $S.leases AS
SELECT l.resource, l.own ->> 'owner' AS owner, (l.own ->> 'token')::bigint AS token,
       CASE WHEN l.standing = 'granted' AND l.running THEN 'held'
            WHEN l.standing = 'reserved' AND l.running THEN 'reserved'
            WHEN l.rests_until > clock_timestamp() THEN 'resting'
            ELSE 'free' END AS state,
       CASE WHEN l.running THEN l.fires_at END AS expires_at,
       l.ttl_ms * interval '1 millisecond' AS ttl,
       to_timestamp((l.own ->> 'acquired_at_ms')::bigint / 1000.0) AS acquired_at,
       l.own ->> 'reason' AS reason, l.own ->> 'by' AS by, l.own ->> 'why' AS why,
       l.work ->> 'note' AS note, l.work ->> 'progress' AS progress
  FROM (SELECT convert_from(substr(o.key, 5), 'UTF8') AS resource,
               convert_from(o.value, 'UTF8')::jsonb AS own,
               convert_from(a.value, 'UTF8')::jsonb ->> 'standing' AS standing,
               convert_from(w.value, 'UTF8')::jsonb AS work, a.fires_at, a.ttl_ms,
               greatest(clock_timestamp(), a.at) < least(a.fires_at, cap.fires_at) AS running,
               greatest(rest.fires_at, cool.fires_at) AS rests_until
          FROM $S.record o
          LEFT JOIN $S.record a ON a.key = 'alive/'::bytea || substr(o.key, 5)
          LEFT JOIN $S.record w ON w.key = 'work/'::bytea || substr(o.key, 5)
          LEFT JOIN $S.record cap ON cap.key = 'cap/'::bytea || substr(o.key, 5)
          LEFT JOIN $S.record rest ON rest.key = 'rest/'::bytea || substr(o.key, 5)
          LEFT JOIN $S.record cool ON cool.key = 'cool/'::bytea || substr(o.key, 5)
         WHERE o.key >= 'own/'::bytea AND o.key < 'own0'::bytea) l
 ORDER BY l.resource;
CREATE OR REPLACE VIEW $S.events AS
SELECT convert_from(substr(r.key, 4), 'UTF8') AS number,
       to_timestamp((e.line ->> 'at_ms')::bigint / 1000.0) AS at, e.line ->> 'kind' AS kind,
       e.line ->> 'resource' AS resource, (e.line ->> 'token')::bigint AS token,
       e.line ->> 'owner' AS owner,
       e.line - ARRAY['at_ms', 'kind', 'resource', 'token', 'owner'] AS details
  FROM $S.record r, LATERAL (SELECT convert_from(r.value, 'UTF8')::jsonb AS line) e
 WHERE r.key >= 'ev/'::bytea AND r.key < 'ev0'::bytea
 ORDER BY r.key;
UPDATE $S.meta SET version = 2 WHERE version < 2;
)sql";

// The functions are those of version 3: they take the gate. One that was called before they stood
// may still run and takes none; version 4 says that there is no such one any more (schema.cc).
const char* const kGateBuilt = "UPDATE $S.meta SET version = 3 WHERE version < 3;";
const char* const kGateOpened = "UPDATE $S.meta SET version = 4 WHERE version < 4;";
// The functions of version 5 judge what runs once more after the last lock, those of version 6 also
// after the last insertion.
const char* const kJudgedLast = "UPDATE $S.meta SET version = 6 WHERE version < 6;";

}  // namespace stint::store::postgres
