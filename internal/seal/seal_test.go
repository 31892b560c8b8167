package seal

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
)

// The test vectors of https://c2sp.org/XAES-256-GCM.
func TestVectors(t *testing.T) {
	for _, test := range []struct {
		key             byte
		additional, out string
	}{
		{1, "", "ce546ef63c9cc60765923609b33a9a1974e96e52daf2fcf7075e2271"},
		{3, "c2sp.org/XAES-256-GCM", "986ec1832593df5443a179437fd083bf3fdb41abd740a21f71eb769d"},
	} {
		s, err := keyOf(bytes.Repeat([]byte{test.key}, 32))
		if err != nil {
			t.Fatal(err)
		}
		nonce := []byte("ABCDEFGHIJKLMNOPQRSTUVWX")
		out := s.aead(nonce).Seal(nil, nonce[derivedSize:], []byte("XAES-256-GCM"), []byte(test.additional))
		if got := hex.EncodeToString(out); got != test.out {
			t.Errorf("key %d: %s, want %s", test.key, got, test.out)
		}
	}
}

func newTest(t *testing.T, secret string) *Sealer {
	t.Helper()
	s, err := New(secret)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSecretLength(t *testing.T) {
	if _, err := New(strings.Repeat("é", minSecret-1)); err == nil {
		t.Error("a secret that is too short is accepted")
	}
	if _, err := New(strings.Repeat("é", minSecret)); err != nil {
		t.Error(err)
	}
}

func TestRecordsAreBoundToTheirPlace(t *testing.T) {
	s := newTest(t, "a secret of some length")
	plain := []byte("the text of a message")
	sealed := s.Seal(plain, "jobs", []byte("1"))
	if bytes.Contains(sealed, plain[:8]) {
		t.Error("the record contains the plain text")
	}
	if got, err := s.Open(sealed, "jobs", []byte("1")); err != nil || !bytes.Equal(got, plain) {
		t.Errorf("%q, %v", got, err)
	}
	refuse := func(name string, s *Sealer, sealed []byte, table, id string) {
		if _, err := s.Open(sealed, table, []byte(id)); !errors.Is(err, ErrOpen) {
			t.Errorf("%s: %v", name, err)
		}
	}
	refuse("other table", s, sealed, "messages", "1")
	refuse("other id", s, sealed, "jobs", "2")
	refuse("other split between table and id", s, sealed, "job", "s1")
	refuse("other secret", newTest(t, "another secret of length"), sealed, "jobs", "1")
	refuse("cut", s, sealed[:len(sealed)-1], "jobs", "1")
	refuse("empty", s, nil, "jobs", "1")
	for i := range sealed {
		bad := bytes.Clone(sealed)
		bad[i] ^= 0x10
		refuse("flipped bit", s, bad, "jobs", "1")
	}
	if bytes.Equal(sealed, s.Seal(plain, "jobs", []byte("1"))) {
		t.Error("the same record is sealed to the same bytes twice")
	}
}

func TestBatch(t *testing.T) {
	s := newTest(t, "a secret of a test")
	nonces, keys := map[string]bool{}, map[string]bool{}
	b := s.Batch()
	for range 3 {
		var sealed [][]byte
		texts := []string{"", "text", strings.Repeat("long", maxBatchRoom), "text", strings.Repeat("more", 100)}
		for _, text := range texts {
			sealed = append(sealed, b.Seal([]byte(text), "table", []byte("id")))
		}
		for i, record := range sealed { // none has overwritten another
			if plain, err := s.Open(record, "table", []byte("id")); err != nil || string(plain) != texts[i] {
				t.Errorf("record %d: %.20q, %v", i, plain, err)
			}
			if _, err := s.Open(record, "table", []byte("other")); !errors.Is(err, ErrOpen) {
				t.Errorf("record %d at another place: %v", i, err)
			}
			nonces[string(record[:nonceSize])] = true
			keys[string(record[:derivedSize])] = true
		}
		b.Reset()
	}
	if len(nonces) != 15 || len(keys) != 3 {
		t.Errorf("%d nonces and %d keys for 15 records of 3 batches", len(nonces), len(keys))
	}
	clear(nonces)
	for range 600 {
		nonces[string(b.Seal(nil, "table", nil)[:nonceSize])] = true
	}
	if len(nonces) != 600 {
		t.Errorf("%d nonces for 600 records", len(nonces))
	}
}

// TestOpenInTurns checks that records of several batches can be opened in any order and at once,
// although the key of the last one is kept.
func TestOpenInTurns(t *testing.T) {
	s := newTest(t, "a secret of a test")
	a, b := s.Batch(), s.Batch()
	texts := []string{"one", "two", "three", "four"}
	var sealed [][]byte
	for i, text := range texts {
		sealed = append(sealed, []*Batch{a, b}[i%2].Seal([]byte(text), "table", []byte("id")))
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 100 {
				if plain, err := s.Open(sealed[i%4], "table", []byte("id")); err != nil || string(plain) != texts[i%4] {
					t.Errorf("record %d: %q, %v", i%4, plain, err)
				}
			}
		})
	}
	wg.Wait()
}

func TestHashesDependOnPurposeAndSecret(t *testing.T) {
	s := newTest(t, "a secret of some length")
	h := s.Hash("destination", "json://host")
	if h != s.Hash("destination", "json://host") {
		t.Error("the same text has two hashes")
	}
	if h == s.Hash("key", "json://host") || h == newTest(t, "another secret of length").Hash("destination", "json://host") {
		t.Error("the hash is that of another purpose or secret")
	}
}

func TestFiles(t *testing.T) {
	s := newTest(t, "a secret of some length")
	for _, size := range []int64{0, 1, ChunkSize - 1, ChunkSize, ChunkSize + 1, 3*ChunkSize + 5} {
		data := make([]byte, size)
		rand.NewChaCha8([32]byte{}).Read(data)
		var chunks [][]byte
		err := s.SealFile(bytes.NewReader(data), size, []byte("file"), func(i int64, sealed []byte) error {
			if i != int64(len(chunks)) {
				t.Errorf("chunk %d comes after %d", i, len(chunks))
			}
			chunks = append(chunks, sealed)
			return nil
		})
		if err != nil || int64(len(chunks)) != Chunks(size) {
			t.Fatalf("%d bytes: %d chunks, %v", size, len(chunks), err)
		}
		read := func(i int64) ([]byte, error) { return chunks[i], nil }
		r := io.NewSectionReader(s.OpenFile(size, []byte("file"), read), 0, size)
		if err := iotest.TestReader(r, data); err != nil {
			t.Errorf("%d bytes: %v", size, err)
		}
		if size <= ChunkSize {
			continue
		}
		swapped := func(i int64) ([]byte, error) { return chunks[1-i], nil }
		for name, bad := range map[string]io.ReaderAt{
			"chunks in another order": s.OpenFile(size, []byte("file"), swapped),
			"another file":            s.OpenFile(size, []byte("other"), read),
			"another length":          s.OpenFile(size+1, []byte("file"), read),
		} {
			if _, err := bad.ReadAt(make([]byte, 10), 0); !errors.Is(err, ErrOpen) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestFileThatIsShorterThanItsSize(t *testing.T) {
	s := newTest(t, "a secret of some length")
	err := s.SealFile(strings.NewReader("abc"), 4, nil, func(int64, []byte) error { return nil })
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
}
