// Package standardwebhook computes the signatures of Standard Webhooks, see
// https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md.
package standardwebhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// The fields of the header of a signed request.
const (
	HeaderID        = "Webhook-Id"
	HeaderTimestamp = "Webhook-Timestamp"
	HeaderSignature = "Webhook-Signature"
)

// SecretPrefix is before the secrets that programs show.
const SecretPrefix = "whsec_"

// minSecret is the minimum length of a secret in bytes, decoded. The specification asks
// for 24 to 64.
const minSecret = 16

// version is before a signature with a shared secret.
const version = "v1,"

// A Key signs requests and verifies them.
type Key []byte

// ParseKey returns the key of a secret, which is base64 with or without [SecretPrefix].
func ParseKey(secret string) (Key, error) {
	raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, SecretPrefix))
	if err != nil {
		return nil, errors.New("must be base64, with whsec_ before it or not")
	}
	if len(raw) < minSecret {
		return nil, fmt.Errorf("is %d bytes long and must be at least %d; copy all of it from the other program", len(raw), minSecret)
	}
	return raw, nil
}

// Sign returns the header of a request with a body that is sent at a time. All attempts to
// send a message have one id, so that the receiver knows a repetition.
func (k Key) Sign(id string, at time.Time, body io.WriterTo) (map[string]string, error) {
	seconds := strconv.FormatInt(at.Unix(), 10)
	sum, err := k.sum(id, seconds, body)
	if err != nil {
		return nil, err
	}
	return map[string]string{
		HeaderID:        id,
		HeaderTimestamp: seconds,
		HeaderSignature: version + base64.StdEncoding.EncodeToString(sum),
	}, nil
}

// maxSignatures is the maximum number of signatures to check of one request. Programs
// send several while a secret is being replaced.
const maxSignatures = 10

// Verify reports whether one of the signatures in a field of the header is the signature of body,
// sent with id at timestamp, a number of seconds since 1970.
func (k Key) Verify(id, timestamp, signatures string, body io.WriterTo) bool {
	want, err := k.sum(id, timestamp, body)
	if err != nil {
		return false
	}
	checked := 0
	for signature := range strings.FieldsSeq(signatures) {
		encoded, ok := strings.CutPrefix(signature, version)
		if !ok {
			continue
		}
		if checked++; checked > maxSignatures {
			return false
		}
		if got, err := base64.StdEncoding.DecodeString(encoded); err == nil && hmac.Equal(got, want) {
			return true
		}
	}
	return false
}

// sum returns the HMAC-SHA256 of what is signed.
func (k Key) sum(id, timestamp string, body io.WriterTo) ([]byte, error) {
	m := hmac.New(sha256.New, k)
	m.Write([]byte(id + "." + timestamp + "."))
	if _, err := body.WriteTo(m); err != nil {
		return nil, fmt.Errorf("signing the body: %w", err)
	}
	return m.Sum(nil), nil
}
