CREATE TABLE links_links (
    tenant TEXT NOT NULL,
    url TEXT NOT NULL,
    owner TEXT NOT NULL,
    state TEXT NOT NULL DEFAULT 'new',
    checked_at BIGINT,
    PRIMARY KEY (tenant, url)
);
