package api

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"io"
	"maps"
	"net/http"
	"slices"
)

// IdempotencyHeader is the header with a client's key for a message: a request
// with the same key is the same message again.
const IdempotencyHeader = "Idempotency-Key"

// maxIdempotencyKey is the length of such a key in bytes.
const maxIdempotencyKey = 255

// IdempotencyKey returns the idempotency key of r, or "". It returns a 400 if
// there are several or the key is too long.
func IdempotencyKey(r *http.Request) (string, error) {
	values := r.Header.Values(IdempotencyHeader)
	switch {
	case len(values) == 0:
		return "", nil
	case len(values) > 1:
		return "", badRequest("the request has %d headers %s; send one", len(values), IdempotencyHeader)
	case values[0] == "" || len(values[0]) > maxIdempotencyKey:
		return "", badRequest("the header %s must have 1 to %d bytes", IdempotencyHeader, maxIdempotencyKey)
	}
	return values[0], nil
}

// Fingerprint returns a hash of the content of the request. Repeated requests
// have the same hash, different ones have different hashes. It must be called
// before [Request.Attachments].
func (q *Request) Fingerprint() ([]byte, error) {
	h := fingerprint{sha256.New()}
	for _, name := range slices.Sorted(maps.Keys(q.content.fields)) {
		f := q.content.fields[name]
		if !isField(name) && !templateField.MatchString(name) || f.absent() {
			continue
		}
		h.add(name, string(f.json), fmt.Sprint(len(f.texts)))
		h.add(f.texts...)
	}
	for _, name := range slices.Sorted(maps.Keys(q.content.query)) {
		h.add(name, fmt.Sprint(len(q.content.query[name])))
		h.add(q.content.query[name]...)
	}
	for _, a := range q.files.attached {
		h.add(a.Name, a.ContentType, fmt.Sprint(a.Size))
		if _, err := io.Copy(h, a.Open()); err != nil {
			return nil, fmt.Errorf("reading an attachment: %w", err)
		}
	}
	return h.Sum(nil), nil
}

// fingerprint hashes texts so that different lists of texts have different
// hashes.
type fingerprint struct{ hash.Hash }

func (h fingerprint) add(texts ...string) {
	for _, s := range texts {
		_ = binary.Write(h, binary.BigEndian, uint64(len(s))) // a hash takes everything
		_, _ = io.WriteString(h, s)
	}
}
