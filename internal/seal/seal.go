// Package seal encrypts and authenticates what the gateway stores.
//
// The cipher is XAES-256-GCM (https://c2sp.org/XAES-256-GCM): AES-256-GCM with
// a key that is derived for each record from half of a random 24-byte nonce.
// Random nonces of that length are safe for any number of records; the 12 bytes
// of plain AES-GCM are not.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"hash"
	"sync"
	"unicode/utf8"
)

// minSecret is the minimum length of a secret, in characters.
const minSecret = 16

// Overhead is the number of bytes that sealing adds to a record.
const Overhead = nonceSize + 16

const (
	nonceSize   = 24
	derivedSize = 12 // the part of the nonce that the key of a record is derived from
)

// ErrOpen is returned for a record that is damaged, that was sealed under
// another secret, or that belongs to another place.
var ErrOpen = errors.New("the stored record does not authenticate")

// Sealer seals and opens records under one secret. It is safe for concurrent
// use.
type Sealer struct {
	block cipher.Block
	k1    [aes.BlockSize]byte // the subkey of CMAC for whole blocks
	hash  []byte              // the key of Hash

	hashers sync.Pool // of *hasher
}

// New returns a Sealer whose keys are derived from secret with HKDF-SHA-256
// (RFC 5869). It returns an error if secret has fewer than [minSecret]
// characters.
func New(secret string) (*Sealer, error) {
	if n := utf8.RuneCountInString(secret); n < minSecret {
		return nil, fmt.Errorf("the secret has %d characters; write at least %d", n, minSecret)
	}
	derive := func(purpose string) ([]byte, error) {
		return hkdf.Key(sha256.New, []byte(secret), nil, "caddy-notify queue 1 "+purpose, 32)
	}
	key, err := derive("encryption")
	if err != nil {
		return nil, fmt.Errorf("deriving the key of the queue: %w", err)
	}
	lookup, err := derive("lookup")
	if err != nil {
		return nil, fmt.Errorf("deriving the key of the queue: %w", err)
	}
	return newSealer(key, lookup)
}

func newSealer(key, hash []byte) (*Sealer, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	s := &Sealer{block: block, hash: hash}
	block.Encrypt(s.k1[:], s.k1[:])
	var carry byte // double the block in GF(2^128), as NIST SP 800-38B does
	for i := len(s.k1) - 1; i >= 0; i-- {
		s.k1[i], carry = s.k1[i]<<1|carry, s.k1[i]>>7
	}
	s.k1[len(s.k1)-1] ^= byte(subtle.ConstantTimeSelect(int(carry), 0x87, 0))
	return s, nil
}

// aead returns AES-256-GCM with the key that is derived from the nonce.
func (s *Sealer) aead(nonce []byte) cipher.AEAD {
	var key [2 * aes.BlockSize]byte
	for i := range 2 {
		b := key[i*aes.BlockSize:][:aes.BlockSize]
		b[1], b[2] = byte(i+1), 'X'
		copy(b[4:], nonce[:derivedSize])
		subtle.XORBytes(b, b, s.k1[:])
		s.block.Encrypt(b, b)
	}
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err) // the length of the key is right
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // the block size is right
	}
	return gcm
}

// Seal encrypts plain and binds it to a table and an ID in the table.
func (s *Sealer) Seal(plain []byte, table string, id []byte) []byte {
	out := make([]byte, nonceSize, len(plain)+Overhead)
	rand.Read(out) // never returns an error
	return s.aead(out).Seal(out, out[derivedSize:nonceSize], plain, place(table, id))
}

// Batch seals records that are written together. It derives one key for all of
// them: their nonces begin with the same random 12 bytes. The 12 bytes that
// follow are for AES-GCM. They are random for the first record and count up from
// there, so that no two records of a batch have the same. A Batch is not safe for
// concurrent use.
type Batch struct {
	sealer *Sealer
	aead   cipher.AEAD
	nonce  [nonceSize]byte // of the next record
	place  []byte          // of the last record; its room is used again
	room   []byte          // for the next records
}

// The bounds of the number of bytes that a batch allocates at once.
const (
	minBatchRoom = 1 << 10
	maxBatchRoom = 64 << 10
)

// Batch returns a new batch.
func (s *Sealer) Batch() *Batch {
	b := &Batch{sealer: s}
	b.renew()
	return b
}

// Reset makes b a new batch, with another key. The records that b has sealed
// must not be used afterwards, because their memory is used again.
func (b *Batch) Reset() {
	if b.room = b.room[:0]; cap(b.room) > maxBatchRoom {
		b.room = nil // of a long record
	}
	b.renew()
}

func (b *Batch) renew() {
	rand.Read(b.nonce[:]) // never returns an error
	b.aead = b.sealer.aead(b.nonce[:])
}

// Seal seals a record as [Sealer.Seal] does.
func (b *Batch) Seal(plain []byte, table string, id []byte) []byte {
	size := len(plain) + Overhead
	if cap(b.room)-len(b.room) < size {
		// The old room belongs to its records.
		b.room = make([]byte, 0, max(size, min(max(2*cap(b.room), minBatchRoom), maxBatchRoom)))
	}
	from := len(b.room)
	b.room = b.room[:from+size]
	out := append(b.room[from:from:from+size], b.nonce[:]...)
	b.place = appendPlace(b.place[:0], table, id)
	out = b.aead.Seal(out, b.nonce[derivedSize:], plain, b.place)
	for i := nonceSize - 1; i >= derivedSize; i-- {
		if b.nonce[i]++; b.nonce[i] != 0 {
			break
		}
	}
	return out
}

// Open returns the content of a record. The error is [ErrOpen].
func (s *Sealer) Open(sealed []byte, table string, id []byte) ([]byte, error) {
	if len(sealed) < Overhead {
		return nil, ErrOpen
	}
	plain, err := s.aead(sealed).Open(nil, sealed[derivedSize:nonceSize], sealed[nonceSize:], place(table, id))
	if err != nil {
		return nil, ErrOpen
	}
	return plain, nil
}

func place(table string, id []byte) []byte {
	return appendPlace(make([]byte, 0, len(table)+1+len(id)), table, id)
}

func appendPlace(b []byte, table string, id []byte) []byte {
	return append(append(append(b, table...), 0), id...)
}

// HashSize is the length of a [Hash].
const HashSize = 16

// Hash is the keyed hash of a text. A store looks up or groups records by it,
// and does not keep the text.
type Hash [HashSize]byte

// maxRoom is the size of texts whose memory is kept for the next one.
const maxRoom = 4 << 10

// hasher computes hashes. It is used again, because each message has several.
type hasher struct {
	hash.Hash
	room []byte
}

// Hash returns the keyed hash of text. Different purposes give different hashes
// of the same text.
func (s *Sealer) Hash(purpose, text string) (h Hash) {
	m, ok := s.hashers.Get().(*hasher)
	if !ok {
		m = &hasher{Hash: hmac.New(sha256.New, s.hash)}
	}
	m.room = append(append(append(m.room[:0], purpose...), 0), text...)
	m.Reset()
	m.Write(m.room)
	m.room = m.Sum(m.room[:0])
	copy(h[:], m.room)
	if cap(m.room) <= maxRoom {
		s.hashers.Put(m)
	}
	return h
}
