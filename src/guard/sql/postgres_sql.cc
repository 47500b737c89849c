#include "guard/sql/postgres_sql.h"

namespace stint::guard {

const char* const kGuardTables = R"sql(
DO $f$
BEGIN
  IF to_regclass('stint.guard') IS NULL AND (to_regclass('stint.fences') IS NOT NULL
      OR to_regclass('stint.sealing') IS NOT NULL OR to_regclass('stint.overrides') IS NOT NULL) THEN
    RAISE EXCEPTION 'the schema stint holds a table fences, sealing or overrides that is not Stint''s'
      USING ERRCODE = '42P07';
  END IF;
END $f$;
CREATE TABLE IF NOT EXISTS stint.guard (
  product text PRIMARY KEY CHECK (product = 'stint guard'),
  version integer NOT NULL,
  made_schema boolean NOT NULL
);
-- Since version 2; an older row has none until it is installed again.
ALTER TABLE stint.guard ADD COLUMN IF NOT EXISTS store_schema text;
-- Since version 6: the schema was open to everybody before.
ALTER TABLE stint.guard ADD COLUMN IF NOT EXISTS had_usage boolean NOT NULL DEFAULT false;
CREATE TABLE IF NOT EXISTS stint.fences (
  resource text COLLATE "C" PRIMARY KEY,
  generation text NOT NULL,
  token bigint NOT NULL CHECK (token > 0),
  used boolean NOT NULL DEFAULT false,
  key text NOT NULL DEFAULT '',
  digest text NOT NULL DEFAULT '',
  raised_at timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 70);
-- Since version 3: the token of a revocation, which nobody was or will be granted.
ALTER TABLE stint.fences ADD COLUMN IF NOT EXISTS nobodys boolean NOT NULL DEFAULT false;
CREATE TABLE IF NOT EXISTS stint.sealing (
  resource text COLLATE "C" PRIMARY KEY,
  generation text NOT NULL,
  token bigint NOT NULL
);
CREATE TABLE IF NOT EXISTS stint.overrides (
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  kind text NOT NULL CHECK (kind IN ('override', 'warn', 'adopt')),
  resource text NOT NULL,
  token bigint,
  relation text,
  operation text,
  role text NOT NULL DEFAULT session_user,
  why text NOT NULL
);
COMMENT ON TABLE stint.guard IS 'Stint: version of the guard, and the schema of the leases if they are here';
COMMENT ON TABLE stint.fences IS 'Stint: the highest token that this database was sealed with, per resource';
COMMENT ON TABLE stint.sealing IS 'Stint: a seal that waits for older transactions; no new ones begin';
COMMENT ON TABLE stint.overrides IS 'Stint: what was let through by an operator, and why';
)sql";

// f_: the fence (no token: none). o_: the offer. i_: the store's word (no newest: not asked).
// i_granted: NULL is a token that is nobody's for ever, a revocation's.
// `raised` is Admitted with a fence that is to be written.
const char* const kGuardLaw = R"sql(
-- Of the versions before 3.
DROP FUNCTION IF EXISTS stint.verdict(boolean, text, bigint, boolean, text, text, text, bigint, boolean,
  text, text, boolean, boolean, text, text[], bigint, boolean);
CREATE OR REPLACE FUNCTION stint.verdict(
  writing boolean,
  f_generation text, f_token bigint, f_used boolean, f_key text, f_digest text, f_nobodys boolean,
  o_generation text, o_token bigint, o_once boolean, o_key text, o_digest text,
  o_by_order boolean, o_adopt boolean,
  i_generation text, i_ancestors text[], i_newest bigint, i_granted boolean)
RETURNS text LANGUAGE plpgsql IMMUTABLE AS $f$
BEGIN
  IF coalesce(o_token, 0) = 0 THEN
    RETURN CASE WHEN writing AND f_token IS NULL THEN 'admitted' ELSE 'no_token' END;
  END IF;
  -- What another store's life left behind counts for nothing once an operator says so.
  IF f_token IS NOT NULL AND (writing OR NOT o_adopt OR f_generation = o_generation) THEN
    IF f_generation = o_generation THEN
      IF o_token < f_token THEN
        RETURN 'stale';
      ELSIF o_token = f_token THEN
        RETURN CASE WHEN f_nobodys AND (writing OR NOT o_by_order) THEN 'never_granted'
                    WHEN NOT writing OR NOT o_once THEN 'admitted'
                    WHEN NOT f_used THEN 'raised'
                    WHEN f_key = o_key AND f_digest = o_digest THEN 'done'
                    ELSE 'used' END;
      END IF;
    END IF;
    IF i_newest IS NULL THEN
      RETURN 'ask_store';
    ELSIF f_generation <> o_generation AND f_generation <> ALL (i_ancestors) THEN
      RETURN 'foreign';
    ELSIF f_token > i_newest THEN
      RETURN 'restored';
    ELSIF o_token <= f_token THEN
      RETURN 'stale';
    END IF;
  END IF;
  -- The store's word.
  RETURN CASE WHEN i_newest IS NULL THEN 'ask_store'
              WHEN i_generation <> o_generation THEN 'foreign'
              WHEN o_token > i_newest THEN 'never_issued'
              WHEN o_token < i_newest THEN 'stale'
              WHEN i_granted IS NOT TRUE AND (writing OR NOT o_by_order) THEN 'never_granted'
              ELSE 'raised' END;
END $f$;
)sql";

const char* const kGuardFunctions = R"sql(
-- With the guard's own rights: who writes need not see the schema of the leases.
CREATE OR REPLACE FUNCTION stint.store_is_here() RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER AS $f$
  SELECT pg_catalog.to_regclass('$R.record') IS NOT NULL
$f$;

-- The word of a store in this very database, its own/R locked until the transaction ends.
-- While the lease runs its writers stand side by side. A late one takes the lock alone, in the
-- queue: a shared lock would let late writers who overlap keep an acquire waiting for ever.
CREATE OR REPLACE FUNCTION stint.own(asked text, of_generation text,
  OUT generation text, OUT ancestors text[], OUT newest bigint, OUT granted boolean,
  OUT remaining interval) LANGUAGE plpgsql AS $f$
DECLARE
  meta jsonb;
  own jsonb;
BEGIN
  IF NOT stint.store_is_here() THEN
    RETURN;
  END IF;
  SELECT convert_from(m.value, 'UTF8')::jsonb INTO meta FROM $R.record m
   WHERE m.key = 'meta/store'::bytea;
  IF meta IS NULL OR meta ? 'moved_to' OR meta ? 'arriving_from'
      OR of_generation <> meta ->> 'generation'
         AND NOT coalesce(meta -> 'ancestors' ? of_generation, false) THEN
    RETURN;
  END IF;
  SELECT a.fires_at - greatest(clock_timestamp(), a.at) INTO remaining FROM $R.record a
   WHERE a.key = convert_to('alive/' || asked, 'UTF8');
  -- Who was admitted before in this transaction has the shared lock: two that both asked for more
  -- would wait for each other.
  IF remaining > interval '0' OR coalesce(current_setting(stint.place_of(asked), true), '') <> '' THEN
    SELECT convert_from(o.value, 'UTF8')::jsonb INTO own FROM $R.record o
     WHERE o.key = convert_to('own/' || asked, 'UTF8') FOR SHARE;
  ELSE
    SELECT convert_from(o.value, 'UTF8')::jsonb INTO own FROM $R.record o
     WHERE o.key = convert_to('own/' || asked, 'UTF8') FOR NO KEY UPDATE;
  END IF;
  IF own IS NULL AND of_generation IS NULL THEN
    RETURN;
  END IF;
  generation := meta ->> 'generation';
  SELECT coalesce(array_agg(a), '{}') INTO ancestors
    FROM jsonb_array_elements_text(coalesce(meta -> 'ancestors', '[]')) a;
  -- A forgotten record's tokens end at the floor.
  newest := coalesce((own ->> 'token')::bigint, (meta ->> 'floor')::bigint, 0);
  granted := CASE WHEN coalesce(own ->> 'claim', '') <> '' THEN true
                  WHEN own IS NULL OR coalesce(own ->> 'owner', '') <> '' THEN false END;
END $f$;

CREATE OR REPLACE FUNCTION stint.checked_input(resource text, token bigint, generation text)
RETURNS void LANGUAGE plpgsql AS $f$
BEGIN
  IF coalesce(octet_length(resource), 0) NOT BETWEEN 1 AND 512 OR resource ~ '[[:cntrl:]]' THEN
    RAISE EXCEPTION 'this is no name of a resource'
      USING ERRCODE = '22023', HINT = '1 to 512 bytes, no control characters.';
  ELSIF token NOT BETWEEN 0 AND 9007199254740991 THEN
    RAISE EXCEPTION '% is no token', token USING ERRCODE = '22023', HINT = 'A token is 1, 2, 3 ...';
  ELSIF generation !~ '^[0-9a-f]{32}$' THEN
    RAISE EXCEPTION 'this is no generation' USING ERRCODE = '22023',
      HINT = '32 hexadecimal digits, as in STINT_GENERATION. For the time that is left say '
        'remaining => interval ''20 s''.';
  END IF;
END $f$;

-- Ends the transaction with a SQLSTATE of its own for each verdict; under `warn` records and goes on.
CREATE OR REPLACE FUNCTION stint.refuse(verdict text, resource text, token bigint, standing text)
RETURNS text LANGUAGE plpgsql AS $f$
DECLARE
  said CONSTANT text := CASE WHEN verdict = 'no_token' THEN
      format('refused: a write under %L needs a token, and none was shown', resource)
    ELSE format('refused: token %s of %L %s', token, resource, CASE verdict
      WHEN 'stale' THEN 'is stale: a newer one was issued'
      WHEN 'used' THEN 'has made its one write already'
      WHEN 'never_issued' THEN 'was never issued'
      WHEN 'never_granted' THEN 'was never granted to anybody'
      WHEN 'foreign' THEN 'belongs to another store''s life'
      WHEN 'restored' THEN 'comes from a store that went back in time'
      WHEN 'ask_store' THEN 'is above the fence or of another generation, and this database cannot ask its store'
      END) END;
  next CONSTANT text := CASE verdict
      WHEN 'ask_store' THEN 'Seal first: the run that holds the lease seals '
        'postgres://...#RESOURCE and begins the transaction anew.'
      WHEN 'no_token' THEN 'Write within a run that holds the lease: set local stint.token to its STINT_TOKEN.'
      WHEN 'used' THEN 'A repeat of the same write shows the same key and digest.'
      WHEN 'restored' THEN 'Tell the operator of the store; nothing was changed here.'
      WHEN 'foreign' THEN 'Look at STINT_STORE and STINT_GENERATION; an operator adopts a target of another store.'
      ELSE 'Another run may have taken over: roll back, stop, and do not repeat this write.' END;
BEGIN
  IF current_setting('stint.guard', true) = 'warn' THEN
    -- What the trigger says of its statement; nothing where admit() was called by hand.
    INSERT INTO stint.overrides (kind, resource, token, relation, operation, why)
      VALUES ('warn', resource, token, nullif(current_setting('stint.relation', true), ''),
              nullif(current_setting('stint.operation', true), ''), said);
    RAISE WARNING '%', said USING DETAIL = standing, HINT = 'stint.guard is warn: it was let through and recorded.';
    RETURN 'warned';
  END IF;
  RAISE EXCEPTION '%', said USING DETAIL = standing, HINT = next, ERRCODE = CASE verdict
      WHEN 'stale' THEN 'ST001' WHEN 'used' THEN 'ST002' WHEN 'never_issued' THEN 'ST003'
      WHEN 'never_granted' THEN 'ST004' WHEN 'foreign' THEN 'ST005' WHEN 'no_token' THEN 'ST006'
      WHEN 'restored' THEN 'ST007' WHEN 'ask_store' THEN 'ST008' END;
END $f$;

CREATE OR REPLACE FUNCTION stint.standing(fence stint.fences, newest bigint)
RETURNS text LANGUAGE sql STABLE AS $f$
  SELECT CASE WHEN fence.token IS NULL THEN 'There is no fence.'
              ELSE format('The fence is at token %s of generation %s since %s.', fence.token,
                fence.generation, fence.raised_at) END
         || CASE WHEN newest IS NULL THEN '' ELSE format(' The newest token issued is %s.', newest) END
$f$;

-- A frozen client must not keep a seal waiting: the server ends its transaction. Never zero, which
-- means for ever; never longer than the session's own limit.
CREATE OR REPLACE FUNCTION stint.limit_time(remaining interval) RETURNS void LANGUAGE plpgsql AS $f$
DECLARE
  ms CONSTANT bigint := least(greatest(extract(epoch FROM remaining) * 1000, 100), 2147483647);
  idle CONSTANT bigint := extract(epoch FROM
    current_setting('idle_in_transaction_session_timeout')::interval) * 1000;
  running CONSTANT bigint := extract(epoch FROM current_setting('statement_timeout')::interval) * 1000;
BEGIN
  PERFORM set_config('idle_in_transaction_session_timeout',
            least(ms, nullif(idle, 0))::text, true),
          set_config('statement_timeout', least(ms, nullif(running, 0))::text, true);
END $f$;

-- The next three are unfolded into the caller's expression, under the caller's search_path: every
-- name in them is qualified.
--
-- limit_time() for one setting when nobody says how much time is left. Mostly there is no limit
-- before (0), and nothing has to be read.
CREATE OR REPLACE FUNCTION stint.limit_default(setting text) RETURNS text LANGUAGE sql AS $f$
  SELECT CASE WHEN pg_catalog.current_setting(setting) OPERATOR(pg_catalog.<>) '0'
    AND pg_catalog.current_setting(setting)::interval OPERATOR(pg_catalog.<=) interval '30 s'
    THEN '' ELSE pg_catalog.set_config(setting, '30s', true) END
$f$;

-- The lock of a fence: shared by its writers, alone for who raises it. It belongs to the transaction.
-- A row lock would do too, and writes the row and a multixact for each writer (ADR 0017).
CREATE OR REPLACE FUNCTION stint.lock_of(resource text) RETURNS bigint LANGUAGE sql IMMUTABLE AS $f$
  SELECT pg_catalog.hashtextextended('stint ' OPERATOR(pg_catalog.||) resource COLLATE pg_catalog."C", 0)
$f$;

-- Where the triggers of protected tables find the token that admit() was shown for their resource.
-- Two names with one hash (64 bits) would find each other's token.
CREATE OR REPLACE FUNCTION stint.place_of(resource text) RETURNS text LANGUAGE sql STABLE AS $f$
  SELECT 'stint.held_' OPERATOR(pg_catalog.||) pg_catalog.to_hex(stint.lock_of(resource))
$f$;

-- Judges what admit() could not settle by itself: every case of the law.
CREATE OR REPLACE FUNCTION stint.judge_admit(resource text, token bigint, generation text,
  remaining interval, mode text, key text, digest text)
RETURNS text LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $f$
#variable_conflict use_variable
DECLARE
  once CONSTANT boolean := mode = 'once';
  place CONSTANT text := stint.place_of(resource);
  fence stint.fences;
  coming stint.sealing;
  word record;
  life text;
  verdict text;
BEGIN
  generation := nullif(generation, '');
  token := nullif(token, 0);
  PERFORM stint.checked_input(resource, token, generation);
  IF mode IS NULL OR mode NOT IN ('at-least', 'once') THEN
    RAISE EXCEPTION 'mode is at-least or once' USING ERRCODE = '22023';
  END IF;
  word := stint.own(resource, generation);
  IF remaining IS NOT NULL OR coalesce(current_setting(place, true), '') = '' THEN
    PERFORM stint.limit_time(coalesce(remaining, CASE WHEN word.remaining IS NOT NULL
      THEN greatest(word.remaining, interval '1 s') END, interval '30 s'));
  END IF;
  LOOP
    IF once THEN
      SELECT f.* INTO fence FROM stint.fences f WHERE f.resource = resource COLLATE "C"
         FOR NO KEY UPDATE;
    ELSIF current_setting('transaction_isolation') = 'read committed'
        AND pg_try_advisory_xact_lock_shared(stint.lock_of(resource)) THEN
      SELECT f.* INTO fence FROM stint.fences f WHERE f.resource = resource COLLATE "C";
    ELSE
      -- An older snapshot does not see a seal since; the row's lock does (40001). And who comes
      -- while a seal waits does not queue behind it: the announcement refuses it below.
      SELECT f.* INTO fence FROM stint.fences f WHERE f.resource = resource COLLATE "C" FOR SHARE;
    END IF;
    life := coalesce(generation, word.generation, fence.generation, '');
    -- An own/R that is free or another's is asked also when the fence would do: it costs nothing.
    verdict := stint.verdict(true, fence.generation, fence.token, fence.used, fence.key,
      fence.digest, fence.nobodys, life, token, once, coalesce(key, ''), coalesce(digest, ''), false, false,
      word.generation, word.ancestors, word.newest, word.granted);
    IF word.newest IS NOT NULL AND token IS NOT NULL AND verdict IN ('admitted', 'raised', 'done') THEN
      verdict := replace(stint.verdict(true, NULL, NULL, NULL, NULL, NULL, NULL, life, token, once, '', '',
        false, false, word.generation, word.ancestors, word.newest, word.granted), 'raised', verdict);
    END IF;
    IF verdict IN ('admitted', 'raised') AND token IS NOT NULL THEN
      -- A seal has been announced and waits for those before us: no new ones begin.
      SELECT s.* INTO coming FROM stint.sealing s WHERE s.resource = resource COLLATE "C"
         AND (s.token > token OR s.generation <> life);
      IF coming.token IS NOT NULL THEN
        verdict := 'stale';
      END IF;
    END IF;
    -- Where the lease lives here, own/R is the fence: nothing is raised but the mark of `once`.
    EXIT WHEN verdict <> 'raised' OR NOT once;
    IF fence.token IS NOT NULL THEN
      UPDATE stint.fences f SET generation = life, token = token, used = true,
             key = coalesce(key, ''), digest = coalesce(digest, ''), nobodys = false,
             raised_at = clock_timestamp()
       WHERE f.resource = resource COLLATE "C";
      EXIT;
    END IF;
    INSERT INTO stint.fences VALUES (resource, life, token, true, coalesce(key, ''),
      coalesce(digest, ''), clock_timestamp()) ON CONFLICT DO NOTHING;
    EXIT WHEN FOUND;
  END LOOP;
  -- Also an unfenced target: who calls this wants to be guarded.
  IF token IS NULL THEN
    verdict := 'no_token';
  END IF;
  IF verdict NOT IN ('admitted', 'raised', 'done') THEN
    RETURN stint.refuse(verdict, resource, token, stint.standing(fence, word.newest));
  END IF;
  PERFORM set_config(place, token || ' ' || life, true);
  RETURN CASE verdict WHEN 'done' THEN 'done' ELSE 'admitted' END;
END $f$;

-- First in the transaction that writes. G5: what was judged is locked until its end.
-- The common case is settled here: no store in this database, the fence is at this very token, no
-- seal announced, and no limits of the session's own. In few and short expressions, since plpgsql
-- sets up each one that it meets anew in every transaction; with the caller's rights and
-- search_path, since the server goes through all its settings when it leaves a function that has
-- its own. So every name is qualified.
CREATE OR REPLACE FUNCTION stint.admit(resource text, token bigint, generation text DEFAULT NULL,
  remaining interval DEFAULT NULL, mode text DEFAULT 'at-least', key text DEFAULT '',
  digest text DEFAULT '')
RETURNS text LANGUAGE plpgsql AS $f$
#variable_conflict use_variable
DECLARE
  life pg_catalog.text;
BEGIN
  -- The lock first, then the look, in a statement (and so with a snapshot) of its own.
  IF mode OPERATOR(pg_catalog.=) 'at-least' AND remaining IS NULL
      AND $H
      AND pg_catalog.current_setting('transaction_isolation') OPERATOR(pg_catalog.=) 'read committed'
      AND pg_catalog.pg_try_advisory_xact_lock_shared(stint.lock_of(resource)) THEN
    -- Whatever is announced for the resource is judged below. By no index: there is next to nothing
    -- in that table, and to open an index takes longer than to look through it.
    SELECT f.generation INTO life FROM stint.fences f
     WHERE f.resource OPERATOR(pg_catalog.=) resource COLLATE pg_catalog."C"
       AND f.token OPERATOR(pg_catalog.=) token
       AND NOT f.nobodys
       AND (generation IS NULL OR generation OPERATOR(pg_catalog.=) ''
         OR f.generation OPERATOR(pg_catalog.=) generation)
       AND NOT EXISTS (SELECT FROM stint.sealing s
         WHERE (s.resource OPERATOR(pg_catalog.||) '')
           OPERATOR(pg_catalog.=) resource COLLATE pg_catalog."C");
    IF life IS NOT NULL
        AND pg_catalog.current_setting('statement_timeout') OPERATOR(pg_catalog.=) '0'
        AND pg_catalog.current_setting('idle_in_transaction_session_timeout')
          OPERATOR(pg_catalog.=) '0'
        AND pg_catalog.set_config('statement_timeout', '30s', true) IS NOT NULL
        AND pg_catalog.set_config('idle_in_transaction_session_timeout', '30s', true) IS NOT NULL
        AND pg_catalog.set_config(stint.place_of(resource),
          token OPERATOR(pg_catalog.||) ' ' OPERATOR(pg_catalog.||) life, true) IS NOT NULL THEN
      RETURN 'admitted';
    -- Again in this transaction, as by the triggers; or the session has limits of its own.
    ELSIF life IS NOT NULL AND (pg_catalog.current_setting(stint.place_of(resource), true)
          OPERATOR(pg_catalog.=) (token OPERATOR(pg_catalog.||) ' ' OPERATOR(pg_catalog.||) life)
        OR stint.limit_default('idle_in_transaction_session_timeout') IS NOT NULL
          AND stint.limit_default('statement_timeout') IS NOT NULL
          AND pg_catalog.set_config(stint.place_of(resource),
            token OPERATOR(pg_catalog.||) ' ' OPERATOR(pg_catalog.||) life, true) IS NOT NULL) THEN
      RETURN 'admitted';
    END IF;
  END IF;
  RETURN stint.judge_admit(resource, token, generation, remaining, mode, key, digest);
END $f$;

-- Its last argument has another name, so that `remaining =>` means one function only.
CREATE OR REPLACE FUNCTION stint.admit(resource text, token bigint, time_left interval)
RETURNS text LANGUAGE sql AS $f$ SELECT stint.admit(resource, token, NULL, time_left) $f$;

-- Several: always in the same order, so that no circle of waiters can form.
CREATE OR REPLACE FUNCTION stint.admit_all(resources text[], tokens bigint[],
  generation text DEFAULT NULL, remaining interval DEFAULT NULL)
RETURNS void LANGUAGE plpgsql AS $f$
BEGIN
  -- None at all would be no guard.
  IF coalesce(cardinality(resources), 0) = 0
      OR cardinality(resources) IS DISTINCT FROM cardinality(tokens) THEN
    RAISE EXCEPTION 'as many tokens as resources are needed, and one at least'
      USING ERRCODE = '22023';
  END IF;
  PERFORM stint.admit(o.resource, o.token, generation, remaining)
    FROM (SELECT u.resource, u.token FROM unnest(resources, tokens) AS u (resource, token)
           ORDER BY u.resource COLLATE pg_catalog."C" OFFSET 0) o;
END $f$;
)sql";

}  // namespace stint::guard
