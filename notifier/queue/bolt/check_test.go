package bolt

import (
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"
)

// TestCheckFile checks that every file that bbolt writes passes checkFile, after
// any puts and deletions, and that a changed key of a branch does not. bbolt
// freed a page twice after such a change.
func TestCheckFile(t *testing.T) {
	t.Parallel()
	s, err := Open(Options{Path: t.TempDir(), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	key := func() []byte { return binary.BigEndian.AppendUint64(nil, random.Uint64N(5000)) }
	for i := range 300 {
		err := s.current().Update(func(tx *bbolt.Tx) error {
			b := tx.Bucket([]byte(bucketJobs))
			b.FillPercent = fillPercent
			for range random.IntN(200) {
				if random.IntN(300) < i { // ever more deletions
					if err := b.Delete(key()); err != nil {
						return err
					}
				} else if err := b.Put(key(), make([]byte, random.IntN(600))); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := checkFile(s.dbPath()); err != nil {
			t.Fatalf("after %d transactions: %v", i+1, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	path := filepath.Join(s.path, "queue.db")
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := 0
	for id, seen := range walk(t, path).seen {
		b := file[id*pageSize:]
		if !seen || number.Uint64(b) != uint64(id) || number.Uint16(b[8:]) != flagBranch {
			continue
		}
		elements, err := parse(b[:pageSize], flagBranch)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range elements {
			e.key[len(e.key)-1] ^= 1
			if err := os.WriteFile(path, file, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := checkFile(path); err == nil {
				t.Errorf("page %d: the change of a key is not found", id)
			}
			e.key[len(e.key)-1] ^= 1
			changed++
		}
	}
	if changed < 10 {
		t.Errorf("%d keys changed", changed)
	}
}
