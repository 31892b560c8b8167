package bolt

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// openAs opens a store as the program that writes a format.
func openAs(dir string, f queue.Format) (*Store, error) {
	return Open(Options{Path: dir, NoSync: true, writes: f})
}

// use opens a store as a program that writes a format, and accepts a message.
func use(t *testing.T, dir string, f queue.Format) {
	t.Helper()
	s, err := openAs(dir, f)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Accept(t.Context(), 1<<30, newEntry([]byte("text"), "d")); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// formatIn returns the stored format of a database. edit changes the bucket meta first, if it is not
// nil.
func formatIn(t *testing.T, dir string, edit func(meta *bbolt.Bucket) error) (f queue.Format) {
	t.Helper()
	db, err := bbolt.Open(filepath.Join(dir, "queue.db"), 0o600, (&database{folder: &folder{noSync: true}}).boltOptions())
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) (err error) {
		meta := tx.Bucket([]byte(bucketMeta))
		if edit != nil {
			if err := edit(meta); err != nil {
				return err
			}
		}
		f, err = (&database{writes: queue.Format{Written: 1 << 20}}).checkFormat(meta.Get(keyFormat))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return f
}

// TestFormat checks which programs open a folder that another version has written: an older one
// opens it if it knows what the content needs, and leaves the numbers as they are. A newer one
// raises them.
func TestFormat(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	use(t, dir, written)
	if f := formatIn(t, dir, nil); f != written {
		t.Errorf("the format is %+v, want %+v", f, written)
	}
	compatible, incompatible := queue.Format{Written: 2, Needs: 1}, queue.Format{Written: 7, Needs: 3}
	for _, tt := range []struct{ by, want queue.Format }{
		{compatible, compatible},
		{written, compatible},
		{queue.Format{Written: 2, Needs: 2}, queue.Format{Written: 2, Needs: 2}},
		{incompatible, incompatible},
		{queue.Format{Written: 3, Needs: 3}, incompatible},
		{queue.Format{Written: 8, Needs: 2}, queue.Format{Written: 8, Needs: 3}},
	} {
		use(t, dir, tt.by)
		if f := formatIn(t, dir, nil); f != tt.want {
			t.Errorf("after a program that writes %+v, the format is %+v, want %+v", tt.by, f, tt.want)
		}
	}
	// A folder from before there were formats.
	formatIn(t, dir, func(meta *bbolt.Bucket) error { return meta.Delete(keyFormat) })
	use(t, dir, written)
	if f := formatIn(t, dir, nil); f != written {
		t.Errorf("a folder without a format has %+v then, want %+v", f, written)
	}
}

// TestNewerFormat checks that a program refuses a folder that needs a later one, with an error that
// says what to do, and changes nothing: also if it cannot read the content, which looks damaged to
// it.
func TestNewerFormat(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(meta *bbolt.Bucket) error{
		"as it is":       func(*bbolt.Bucket) error { return nil },
		"another check":  func(meta *bbolt.Bucket) error { return meta.Put(keyCheck, []byte("of another kind")) },
		"another bucket": func(meta *bbolt.Bucket) error { return meta.Tx().DeleteBucket([]byte(bucketHealth)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			use(t, dir, queue.Format{Written: 7, Needs: 3})
			formatIn(t, dir, damage)
			before, err := os.ReadFile(filepath.Join(dir, "queue.db"))
			if err != nil {
				t.Fatal(err)
			}
			s, err := openAs(dir, queue.Format{Written: 2, Needs: 2})
			if err == nil {
				s.Close()
				t.Fatal("it is opened")
			}
			for _, want := range []string{dir, "form 7", "know form 3", "up to 2", "update it", "back-up"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not say %q: %v", want, err)
				}
			}
			after, err := os.ReadFile(filepath.Join(dir, "queue.db"))
			if err != nil || string(after) != string(before) {
				t.Errorf("the database has changed, %v", err)
			}
			if found, err := filepath.Glob(filepath.Join(dir, "*damaged*")); len(found) > 0 || err != nil {
				t.Error(found, err)
			}
		})
	}
}

// TestDamagedFormat checks that a damaged number refuses nobody: the database is replaced as after
// any damage.
func TestDamagedFormat(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	use(t, dir, written)
	db, err := bbolt.Open(filepath.Join(dir, "queue.db"), 0o600, (&database{folder: &folder{noSync: true}}).boltOptions())
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(func(tx *bbolt.Tx) error {
		b := encodeFormat(queue.Format{Written: 1, Needs: 1})
		b[3] |= 0x80
		return tx.Bucket([]byte(bucketMeta)).Put(keyFormat, b)
	}); err != nil {
		t.Fatal(err)
	}
	db.Close()
	s, err := openAs(dir, written)
	if err != nil {
		t.Fatal(err)
	}
	if st, err := s.Stats(t.Context()); err != nil || st.Queued != 1 {
		t.Errorf("%+v, %v", st, err)
	}
	s.Close()
	if f := formatIn(t, dir, nil); f != written {
		t.Errorf("the format is %+v", f)
	}
}
