-- Vectors as they were made: the truth, from which every index is built. `number` is what an index
-- calls a vector; it stays while the id does. A deleted one stays as a row without a vector until
-- its index is compacted. `revision` counts the writes of one namespace of one tenant: an index
-- that has seen revision 7 lacks the rows above it, and no others.
CREATE TABLE agents_vectors (
    namespace  TEXT NOT NULL,
    tenant_id  TEXT NOT NULL,
    model      TEXT NOT NULL,
    id         TEXT NOT NULL,
    user_id    TEXT,
    number     BIGINT NOT NULL,
    revision   BIGINT NOT NULL,
    vector     BYTEA,
    text       TEXT,
    metadata   TEXT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (namespace, tenant_id, model, id)
);
CREATE UNIQUE INDEX agents_vectors_number
    ON agents_vectors (namespace, tenant_id, model, number);
CREATE UNIQUE INDEX agents_vectors_revision
    ON agents_vectors (namespace, tenant_id, model, revision);
CREATE INDEX agents_vectors_user
    ON agents_vectors (namespace, tenant_id, model, user_id, number);
CREATE INDEX agents_vectors_buried
    ON agents_vectors (namespace, tenant_id, model) WHERE vector IS NULL;

-- One row for each namespace of each tenant: which model its vectors are sought by, and how its
-- index is. Whoever writes vectors counts `revision` up first, and so waits for others who do.
CREATE TABLE agents_indexes (
    namespace   TEXT NOT NULL,
    tenant_id   TEXT NOT NULL,
    model       TEXT NOT NULL,
    dimensions  INTEGER NOT NULL,
    revision    BIGINT NOT NULL,
    generation  INTEGER NOT NULL,
    built_at    BIGINT,
    recall      DOUBLE PRECISION,
    measured_at BIGINT,
    PRIMARY KEY (namespace, tenant_id)
);

-- pgvector, where the server has it and we may have it made: a column that is derived from `vector`.
DO $$
BEGIN
    CREATE EXTENSION IF NOT EXISTS vector;
EXCEPTION WHEN OTHERS THEN
    RAISE NOTICE 'pgvector is not used: %', SQLERRM;
END $$;

DO $$
DECLARE
    home text := (
        SELECT nspname FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace
        WHERE extname = 'vector'
    );
BEGIN
    IF home IS NOT NULL THEN
        EXECUTE format('ALTER TABLE agents_vectors ADD COLUMN embedding %I.vector', home);
        CREATE INDEX agents_vectors_unfilled ON agents_vectors (namespace, tenant_id, model)
            WHERE embedding IS NULL AND vector IS NOT NULL;
    END IF;
END $$;

-- Makes the graph for vectors of so many dimensions, or makes it anew. Only the owner of a table
-- may do that, and workers may ask for it.
CREATE OR REPLACE FUNCTION agents_index_near(
    dimensions integer, m integer, ef_construction integer, anew boolean
) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    home text := (
        SELECT nspname FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace
        WHERE extname = 'vector'
    );
    name text := format('agents_vectors_near_%s', dimensions);
BEGIN
    IF anew THEN
        EXECUTE format('DROP INDEX IF EXISTS %I', name);
    END IF;
    EXECUTE format(
        'CREATE INDEX IF NOT EXISTS %I ON agents_vectors USING hnsw '
        '((embedding::%I.vector(%s)) %I.vector_ip_ops) WITH (m = %s, ef_construction = %s) '
        'WHERE %I.vector_dims(embedding) = %s',
        name, home, dimensions, home, m, ef_construction, home, dimensions
    );
END $$;
REVOKE ALL ON FUNCTION agents_index_near FROM PUBLIC;

-- The numbers of the vectors next to one, and their scores. Of a few all are compared. Else it is
-- the graph, whatever statistics say of a table that was just filled; a scan goes on until it has
-- enough of this index, up to a point, and may then have found too few. The names of pgvector are
-- written out, since its schema is not on the path.
CREATE OR REPLACE FUNCTION agents_near(
    namespace text, tenant_id text, model text, wanted text, dimensions integer, most integer,
    ef_search integer, few integer
) RETURNS TABLE (number bigint, score double precision)
LANGUAGE plpgsql SET search_path FROM CURRENT SET enable_sort FROM CURRENT AS $$
DECLARE
    home text := (
        SELECT nspname FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace
        WHERE extname = 'vector'
    );
    is_new boolean := (
        SELECT string_to_array(extversion, '.')::int[] >= '{0,8}' FROM pg_extension
        WHERE extname = 'vector'
    );
    nearness text := format(
        '(embedding::%I.vector(%s)) OPERATOR(%I.<#>) $4::%I.vector(%s)',
        home, dimensions, home, home, dimensions
    );
    exact boolean := (
        SELECT count(*) <= few FROM (
            SELECT 1 FROM agents_vectors AS v
            WHERE v.namespace = agents_near.namespace AND v.tenant_id = agents_near.tenant_id
              AND v.model = agents_near.model
            LIMIT few + 1::bigint
        ) AS counted
    );
BEGIN
    IF NOT exact THEN
        PERFORM set_config('hnsw.ef_search', least(1000, greatest(ef_search, most))::text, true);
        PERFORM set_config('enable_sort', 'off', true);
        IF is_new THEN
            PERFORM set_config('hnsw.iterative_scan', 'strict_order', true);
        END IF;
    END IF;
    RETURN QUERY EXECUTE format(
        'SELECT number, -(%s) FROM agents_vectors '
        'WHERE namespace = $1 AND tenant_id = $2 AND model = $3 '
        'AND %I.vector_dims(embedding) = %s ORDER BY (%s) %s LIMIT $5',
        nearness, home, dimensions, nearness, CASE WHEN exact THEN '+ 0' ELSE '' END
    ) USING namespace, tenant_id, model, wanted, most;
END $$;
