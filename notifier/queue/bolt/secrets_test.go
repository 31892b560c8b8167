package bolt

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddy-notify/caddy-notify/internal/seal"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/queuetest"
)

func TestSecrets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	queuetest.Secrets(t, func(_ *testing.T, _ bool, secret string, older ...string) (queue.Store, error) {
		s, err := Open(Options{Path: dir, Secret: secret, OldSecrets: older, NoSync: true})
		if err != nil {
			return nil, err
		}
		return s, nil
	})
}

// TestSecretsOfDamagedDatabase checks that the records of a database keep their names when the
// secret has changed, and the record that has the key of the names is damaged.
func TestSecretsOfDamagedDatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const first, second = "the first secret, of the tests", "the second secret, of the tests"
	open := func(secret string, older ...string) (*Store, *observer.ObservedLogs) {
		t.Helper()
		core, logs := observer.New(zap.WarnLevel)
		s, err := Open(Options{Path: dir, Secret: secret, OldSecrets: older, NoSync: true, Logger: zap.New(core)})
		if err != nil {
			t.Fatal(err)
		}
		return s, logs
	}
	s, _ := open(first)
	name := s.Hash("a record")
	put := &queue.Update{Names: []queue.Hash{name}, Decide: func(tx *queue.Tx) error {
		tx.Put(name, queue.Record{Data: []byte("content"), Due: time.Now().Add(time.Hour)})
		return nil
	}}
	if err := s.Update(t.Context(), put); err != nil {
		t.Fatal(err)
	}
	s.Close()
	s, _ = open(second, first)
	if _, err := s.Reseal(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Close()

	db, err := os.ReadFile(filepath.Join(dir, "queue.db"))
	if err != nil {
		t.Fatal(err)
	}
	ring, err := os.ReadFile(filepath.Join(dir, "ring"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(db), string(ring), strings.Repeat("x", len(ring)))
	if text == string(db) {
		t.Fatal("the database does not have the ring")
	}
	if err := os.WriteFile(filepath.Join(dir, "queue.db"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, logs := open(second)
	defer s.Close()
	if logs.FilterMessageSnippet("was damaged").Len() != 1 {
		t.Errorf("the log has %v", logs.All())
	}
	if data, err := s.Record(t.Context(), s.Hash("a record")); err != nil || string(data) != "content" {
		t.Errorf("the record is %q, %v", data, err)
	}
}

// The secrets of the tests below, in the order in which they are used.
const (
	firstSecret  = "the first secret, of the tests"
	secondSecret = "the second secret, of the tests"
)

func openSecret(t *testing.T, dir, secret string, older ...string) *Store {
	t.Helper()
	s, err := Open(Options{Path: dir, Secret: secret, OldSecrets: older, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// files are the sizes of the attachments of a message of the tests.
var files = []int64{0, 4, seal.ChunkSize, 2*seal.ChunkSize + 5}

// acceptFiles accepts a message with attachments, and returns its ID and their contents.
func acceptFiles(t *testing.T, s *Store) (id uuid.UUID, contents [][]byte) {
	t.Helper()
	e := newEntry([]byte("text"), "a")
	for _, size := range files {
		contents = append(contents, randomText(int(size)))
		e.Message.Files = append(e.Message.Files, queue.File{Size: size, ReaderAt: bytes.NewReader(contents[len(contents)-1])})
	}
	if err := s.Accept(t.Context(), 1<<40, e); err != nil {
		t.Fatal(err)
	}
	return e.Message.ID, contents
}

// checkFiles checks the attachments of a loaded message.
func checkFiles(t *testing.T, m *queue.Message, want [][]byte) {
	t.Helper()
	if len(m.Files) != len(want) {
		t.Fatalf("%d attachments, want %d", len(m.Files), len(want))
	}
	for i, f := range m.Files {
		got, err := io.ReadAll(io.NewSectionReader(f, 0, f.Size))
		if err != nil || !bytes.Equal(got, want[i]) {
			t.Errorf("attachment %d has %d bytes, want %d, or others: %v", i+1, len(got), len(want[i]), err)
		}
	}
}

func reseal(t *testing.T, s *Store) queue.OldSecrets {
	t.Helper()
	old, err := s.Reseal(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return old
}

// TestResealedFiles checks that attachments do not need the old secret any more, whether their
// messages wait, are being sent, or were given up, and that who reads one meanwhile reads on.
func TestResealedFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openSecret(t, dir, firstSecret)
	ids, contents := make([]uuid.UUID, 3), make([][][]byte, 3)
	for i := range ids {
		ids[i], contents[i] = acceptFiles(t, s)
	}
	jobs, _, err := s.Claim(t.Context(), queue.Claim{Now: time.Now(), Max: 1})
	if err != nil || len(jobs) != 1 {
		t.Fatalf("%d jobs, %v", len(jobs), err)
	}
	jobs[0].Status, jobs[0].Updated = queue.Dead, time.Now()
	if err := s.Settle(t.Context(), &queue.Settlement{Job: &jobs[0]}); err != nil {
		t.Fatal(err)
	}
	s.Close()

	s = openSecret(t, dir, secondSecret, firstSecret)
	if jobs, _, err = s.Claim(t.Context(), queue.Claim{Now: time.Now(), Max: 1}); err != nil || len(jobs) != 1 {
		t.Fatalf("%d jobs, %v", len(jobs), err)
	}
	sent, release, err := s.Load(t.Context(), jobs[0].Message)
	if err != nil {
		t.Fatal(err)
	}
	if old := reseal(t, s); old != (queue.OldSecrets{Set: true}) {
		t.Errorf("when all is sealed again: %+v", old)
	}
	for i := range ids {
		if ids[i] == jobs[0].Message {
			checkFiles(t, sent, contents[i])
		}
	}
	release()
	if _, err := os.Stat(filepath.Join(dir, "files", "reseal.new")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file is left: %v", err)
	}
	s.Close()

	s = openSecret(t, dir, secondSecret)
	for i := range ids {
		m, release, err := s.Load(t.Context(), ids[i])
		if err != nil {
			t.Fatal(err)
		}
		checkFiles(t, m, contents[i])
		release()
	}
}

// TestFilesLeftOld checks what happens with attachments that cannot be sealed again now: they count,
// the old secret stays needed, and no file is left over.
func TestFilesLeftOld(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openSecret(t, dir, firstSecret)
	id, contents := acceptFiles(t, s)
	damaged, _ := acceptFiles(t, s)
	text, err := os.ReadFile(s.filePath(damaged, 3))
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)-1] ^= 1 // not in the first chunk
	if err := os.WriteFile(s.filePath(damaged, 3), text, 0o600); err != nil {
		t.Fatal(err)
	}
	s.Close()
	// As after a crash.
	if err := os.WriteFile(filepath.Join(dir, "files", "reseal.new"), text, 0o600); err != nil {
		t.Fatal(err)
	}

	s = openSecret(t, dir, secondSecret, firstSecret)
	rest := filepath.Join(dir, "files", "reseal.new")
	if _, err := os.Stat(rest); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file of the crash is left: %v", err)
	}
	end := s.backups.begin(func(error) {})
	if old, want := reseal(t, s), 2*(len(files)-1); old.Records != want { // an empty one needs no secret
		t.Errorf("while a back-up is made: %+v, want %d", old, want)
	}
	end()
	for range 2 {
		if old := reseal(t, s); old.Records != 1 || !old.Needed() {
			t.Errorf("with a damaged attachment: %+v", old)
		}
	}
	if _, err := os.Stat(rest); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file is left: %v", err)
	}
	m, release, err := s.Load(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	checkFiles(t, m, contents)
	release()

	// A file whose message ends while it is sealed is not put back.
	gone := filepath.Join(dir, "files", uuid.NewString()+".0")
	if err := os.WriteFile(rest, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.replaceFile(rest, gone, uuid.New()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("replacing the file of a message that has ended: %v", err)
	}
	if _, err := os.Stat(gone); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file is back: %v", err)
	}
}

// TestSecretSettles checks that a store whose secret changes while it runs needs the old one for a while:
// what is being stored then may be sealed under it.
func TestSecretSettles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openSecret(t, dir, firstSecret)
	if err := s.SetSecrets(t.Context(), secondSecret, firstSecret); err != nil {
		t.Fatal(err)
	}
	if old := reseal(t, s); !old.Needed() || old.Records != 0 {
		t.Errorf("at once: %+v", old)
	}
	if err := s.SetSecrets(t.Context(), secondSecret); err == nil {
		t.Error("at once, the old secret can be removed")
	}
	// What was being stored is stored now.
	late := s.sealer.Sealer
	before, err := seal.New(firstSecret)
	if err != nil {
		t.Fatal(err)
	}
	now, err := seal.New(secondSecret, firstSecret)
	if err != nil {
		t.Fatal(err)
	}
	late.Use(before)
	id, contents := acceptFiles(t, s)
	late.Use(now)
	ago := time.Now().Add(-secretSettles)
	s.secretSince.Store(&ago)
	if old := reseal(t, s); old.Needed() {
		t.Errorf("a minute later: %+v", old)
	}
	if err := s.SetSecrets(t.Context(), secondSecret); err != nil {
		t.Error(err)
	}
	m, release, err := s.Load(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	checkFiles(t, m, contents)
	release()
}

// TestBackupOfChangedSecret checks that a back-up has the ring: with a secret that can read only a part
// of the messages, the folder is refused. Without the ring, the other part would be taken for damaged.
func TestBackupOfChangedSecret(t *testing.T) {
	t.Parallel()
	s := openSecret(t, t.TempDir(), firstSecret)
	one, contents := acceptFiles(t, s)
	if err := s.SetSecrets(t.Context(), secondSecret, firstSecret); err != nil {
		t.Fatal(err)
	}
	two, _ := acceptFiles(t, s)
	var archive bytes.Buffer
	if err := s.Backup(t.Context(), &archive); err != nil {
		t.Fatal(err)
	}
	dir := unpack(t, archive.Bytes(), "")
	ring, err := os.ReadFile(filepath.Join(dir, "ring"))
	if err != nil {
		t.Fatal(err)
	}
	for _, secrets := range [][]string{{firstSecret}, {secondSecret}} {
		if s, err := Open(Options{Path: dir, Secret: secrets[0], NoSync: true}); err == nil {
			s.Close()
			t.Errorf("a part of the secrets is accepted: %q", secrets)
		} else if !strings.Contains(err.Error(), "after the new one") {
			t.Error(err)
		}
	}
	if damaged, err := filepath.Glob(filepath.Join(dir, "*damaged*")); err != nil || len(damaged) > 0 {
		t.Errorf("the back-up is taken for damaged: %v, %v", damaged, err)
	}
	restored := openSecret(t, dir, secondSecret, firstSecret)
	for _, id := range []uuid.UUID{one, two} {
		m, release, err := restored.Load(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if id == one {
			checkFiles(t, m, contents)
		}
		release()
	}
	restored.Close()

	// A back-up of an older program has no ring.
	if err := os.Remove(filepath.Join(dir, "ring")); err != nil {
		t.Fatal(err)
	}
	openSecret(t, dir, secondSecret, firstSecret).Close()
	if again, err := os.ReadFile(filepath.Join(dir, "ring")); err != nil || !bytes.Equal(again, ring) {
		t.Errorf("the ring is not there again: %v", err)
	}
}
