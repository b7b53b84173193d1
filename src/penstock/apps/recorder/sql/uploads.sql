-- name: add_upload
INSERT INTO recorder_uploads (
    id, tenant_id, person, learning_id, status, hashes, retries, max_retries, created_at,
    updated_at
)
VALUES (?, ?, ?, ?, 'pending', '[]', 0, ?, ?, ?)
ON CONFLICT (learning_id) DO NOTHING;

-- name: upload
SELECT learning_id, status, document, ipfs_cid, chain_tx_hash, nonce, raw_tx, hashes, max_fee,
    priority_fee, block_number, block_hash, submitted_at
FROM recorder_uploads WHERE learning_id = ?;

-- name: withdraw_upload
-- What has not left the house goes no further.
UPDATE recorder_uploads SET status = 'failed', last_error = 'it was rejected', updated_at = ?
WHERE status = 'pending' AND learning_id = ?;

-- name: begin_again
-- What was rejected, or failed before it left the house, and is approved once more.
UPDATE recorder_uploads SET status = 'pending', document = NULL, ipfs_cid = NULL, retries = 0,
    last_error = NULL, updated_at = ?
WHERE status = 'failed' AND chain_tx_hash IS NULL AND learning_id = ?;

-- name: freeze_upload
-- From here on it is these bytes that are published, whatever becomes of the learning.
UPDATE recorder_uploads SET document = ?, ipfs_cid = ?, updated_at = ?
WHERE learning_id = ? AND status = 'pending' AND document IS NULL;

-- name: ipfs_uploaded
UPDATE recorder_uploads SET status = 'ipfs_uploaded', uploaded_at = ?, updated_at = ?,
    last_error = NULL
WHERE learning_id = ? AND status = 'pending';

-- name: tx_signed
UPDATE recorder_uploads SET status = 'tx_submitted', chain_tx_hash = :hash, chain_id = :chain_id,
    contract = :contract, sender = :sender, nonce = :nonce, raw_tx = :raw_tx, hashes = :hashes,
    max_fee = :max_fee, priority_fee = :priority_fee, submitted_at = :at, updated_at = :at,
    last_error = NULL
WHERE learning_id = :learning_id AND status = 'ipfs_uploaded';

-- name: replaced
UPDATE recorder_uploads SET chain_tx_hash = ?, raw_tx = ?, hashes = ?, max_fee = ?,
    priority_fee = ?, submitted_at = ?
WHERE learning_id = ? AND status = 'tx_submitted' AND raw_tx = ?;

-- name: mined
UPDATE recorder_uploads SET chain_tx_hash = ?, block_number = ?, block_hash = ?, updated_at = ?,
    last_error = NULL
WHERE learning_id = ? AND status = 'tx_submitted';

-- name: unmined
-- The chain has taken the block back.
UPDATE recorder_uploads SET block_number = NULL, block_hash = NULL, updated_at = ?
WHERE learning_id = ? AND status = 'tx_submitted';

-- name: sign_again
UPDATE recorder_uploads SET status = 'ipfs_uploaded', raw_tx = NULL, nonce = NULL,
    block_number = NULL, block_hash = NULL, updated_at = ?
WHERE learning_id = ? AND status = 'tx_submitted';

-- name: confirmed
UPDATE recorder_uploads SET status = 'confirmed', confirmed_at = ?, updated_at = ?,
    raw_tx = NULL, last_error = NULL
WHERE learning_id = ? AND status <> 'confirmed';

-- name: fail_upload
UPDATE recorder_uploads SET status = 'failed', last_error = ?, raw_tx = NULL, updated_at = ?
WHERE learning_id = ? AND status <> 'confirmed';

-- name: note_upload
UPDATE recorder_uploads SET last_error = ?, retries = retries + ?, updated_at = ?
WHERE learning_id = ? AND status NOT IN ('confirmed', 'failed');

-- name: next_nonce
SELECT next_nonce FROM recorder_senders WHERE chain_id = ? AND address = ?;

-- name: on_their_way
SELECT 1 FROM recorder_uploads WHERE chain_id = ? AND sender = ? AND status = 'tx_submitted'
LIMIT 1;

-- name: add_sender
INSERT INTO recorder_senders (chain_id, address, next_nonce) VALUES (?, ?, ?)
ON CONFLICT DO NOTHING;

-- name: take_nonce
UPDATE recorder_senders SET next_nonce = ?
WHERE chain_id = ? AND address = ? AND next_nonce = ?;

-- name: set_nonce
UPDATE recorder_senders SET next_nonce = ? WHERE chain_id = ? AND address = ?;

-- name: add_revocation
INSERT INTO recorder_revocations (
    id, tenant_id, learning_id, ipfs_cid, reason, revoked_by, revoked_at
)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (learning_id) DO NOTHING;

-- name: revocation
SELECT revoked_at FROM recorder_revocations WHERE learning_id = ?;

-- name: unpinned
UPDATE recorder_revocations SET unpinned_at = ? WHERE learning_id = ?;
