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
	"sync/atomic"
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

// Sealer seals records under a secret, and opens those that were sealed under it
// or under an older one. It is safe for concurrent use.
type Sealer struct {
	keys atomic.Pointer[keys]

	lookup atomic.Pointer[lookup]
}

// lookup is the key of [Sealer.Hash]. It stays the same when the secret changes; see
// [Sealer.Join].
type lookup struct {
	key     []byte
	hashers sync.Pool // of *hasher
}

// keys are the keys of a sealer. The first one seals, and all open.
type keys []key

// first returns the key that seals.
func (s *Sealer) first() *key { return &(*s.keys.Load())[0] }

// key is what is derived from one secret.
type key struct {
	block  cipher.Block
	k1     [aes.BlockSize]byte // the subkey of CMAC for whole blocks
	id     keyID
	lookup []byte // the key of Hash if this is the first secret of a store
	older  bool   // it is not the first key of its sealer

	opened *atomic.Pointer[derived] // the last record; nil before the first
}

// derived is the cipher of a record, which others of the same [Batch] have, too. They are often read
// one after another.
type derived struct {
	from [derivedSize]byte
	aead cipher.AEAD
}

// New returns a Sealer whose keys are derived from secret with HKDF-SHA-256
// (RFC 5869). It opens what was sealed under older secrets, too. It returns an
// error if one has fewer than [minSecret] characters.
func New(secret string, older ...string) (*Sealer, error) {
	var all keys
	for _, secret := range append([]string{secret}, older...) {
		k, err := newKey(secret)
		if err != nil {
			return nil, err
		}
		k.older = len(all) > 0
		all = append(all, k)
	}
	s := new(Sealer)
	s.keys.Store(&all)
	s.lookup.Store(&lookup{key: all[0].lookup})
	return s, nil
}

// Use makes s seal and open with the secrets of other, which has joined the same store.
func (s *Sealer) Use(other *Sealer) { s.keys.Store(other.keys.Load()) }

func newKey(secret string) (k key, err error) {
	if n := utf8.RuneCountInString(secret); n < minSecret {
		return k, fmt.Errorf("the secret has %d characters; write at least %d", n, minSecret)
	}
	derive := func(purpose string) ([]byte, error) {
		b, err := hkdf.Key(sha256.New, []byte(secret), nil, "caddy-notify queue 1 "+purpose, 32)
		if err != nil {
			return nil, fmt.Errorf("deriving the key of the queue: %w", err)
		}
		return b, nil
	}
	encryption, err := derive("encryption")
	if err != nil {
		return k, err
	}
	if k, err = keyOf(encryption); err != nil {
		return k, err
	}
	if k.lookup, err = derive("lookup"); err != nil {
		return k, err
	}
	id, err := derive("name")
	copy(k.id[:], id)
	return k, err
}

// keyOf returns a key that encrypts with 32 bytes.
func keyOf(encryption []byte) (k key, err error) {
	if k.block, err = aes.NewCipher(encryption); err != nil {
		return k, err
	}
	k.block.Encrypt(k.k1[:], k.k1[:])
	var carry byte // double the block in GF(2^128), as NIST SP 800-38B does
	for i := len(k.k1) - 1; i >= 0; i-- {
		k.k1[i], carry = k.k1[i]<<1|carry, k.k1[i]>>7
	}
	k.k1[len(k.k1)-1] ^= byte(subtle.ConstantTimeSelect(int(carry), 0x87, 0))
	k.opened = new(atomic.Pointer[derived])
	return k, nil
}

// aead returns AES-256-GCM with the key that is derived from the nonce.
func (s *key) aead(nonce []byte) cipher.AEAD {
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
	return s.first().seal(newNonce(), plain, place(table, id))
}

func newNonce() (nonce [nonceSize]byte) {
	rand.Read(nonce[:]) // never returns an error
	return nonce
}

func (s *key) seal(nonce [nonceSize]byte, plain, place []byte) []byte {
	out := append(make([]byte, 0, len(plain)+Overhead), nonce[:]...)
	return s.aead(out).Seal(out, out[derivedSize:nonceSize], plain, place)
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
	b.aead = b.sealer.first().aead(b.nonce[:])
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
	plain, _, err := s.open(sealed, table, id)
	return plain, err
}

// IsOld reports whether a record was sealed under an older secret.
func (s *Sealer) IsOld(sealed []byte, table string, id []byte) bool {
	_, k, err := s.open(sealed, table, id)
	return err == nil && k.older
}

// Renew returns a record that was sealed under an older secret, sealed under the present one.
// It returns nil for any other record.
func (s *Sealer) Renew(sealed []byte, table string, id []byte) []byte {
	plain, k, err := s.open(sealed, table, id)
	if err != nil || !k.older {
		return nil
	}
	return s.Seal(plain, table, id)
}

// open returns the content of a record, and the key that has sealed it.
func (s *Sealer) open(sealed []byte, table string, id []byte) (plain []byte, k *key, err error) {
	if len(sealed) < Overhead {
		return nil, nil, ErrOpen
	}
	at := place(table, id)
	all := *s.keys.Load()
	for i := range all {
		if plain, err = all[i].open(sealed, at); err == nil {
			return plain, &all[i], nil
		}
	}
	return nil, nil, ErrOpen
}

func (s *key) open(sealed, place []byte) ([]byte, error) {
	d := s.opened.Load()
	if from := [derivedSize]byte(sealed); d == nil || d.from != from {
		d = &derived{from, s.aead(sealed)}
		s.opened.Store(d)
	}
	return d.aead.Open(nil, sealed[derivedSize:nonceSize], sealed[nonceSize:], place)
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
	l := s.lookup.Load()
	m, ok := l.hashers.Get().(*hasher)
	if !ok {
		m = &hasher{Hash: hmac.New(sha256.New, l.key)}
	}
	m.room = append(append(append(m.room[:0], purpose...), 0), text...)
	m.Reset()
	m.Write(m.room)
	m.room = m.Sum(m.room[:0])
	copy(h[:], m.room)
	if cap(m.room) <= maxRoom {
		l.hashers.Put(m)
	}
	return h
}
