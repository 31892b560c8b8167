package spool

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
	"github.com/caddy-notify/caddy-notify/notifier/memory"
)

// TestClose checks that a large attachment is in a temporary file, without the
// path that its name had, and that nothing is left of it after Close.
func TestClose(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789abcdef"), 200_000)
	dir := t.TempDir()
	files := &Spool{MaxSize: 10 << 20, MaxCount: 2, Dir: dir}
	a, err := files.Add("../../log.bin", "", bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(a.Open()); err != nil || !bytes.Equal(got, content) || a.Name != "log.bin" || len(files.files) != 1 {
		t.Errorf("%s: %d bytes in %d files, %v", a.Name, len(got), len(files.files), err)
	}
	if err := files.Close(); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%d temporary files are left", len(left))
	}
	if _, err := io.ReadAll(a.Open()); err == nil {
		t.Error("the file can be read after Close")
	}
}

// TestType checks that the content type is found from the content, in memory
// and in a file.
func TestType(t *testing.T) {
	files := &Spool{MaxSize: 4 << 20, MaxCount: 2, Dir: t.TempDir()}
	defer files.Close()
	for _, size := range []int{0, 2 << 20} {
		a, err := files.Add("graph", "", io.MultiReader(strings.NewReader("\x89PNG\r\n\x1a\n"), bytes.NewReader(make([]byte, size))))
		if err != nil || a.ContentType != "image/png" {
			t.Error(size, a, err)
		}
	}
}

// TestFetchPolicy checks that no file is fetched from an address that the policy
// does not allow, even over a connection that is open already.
func TestFetchPolicy(t *testing.T) {
	var hits atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { hits.Add(1) }))
	defer s.Close()
	policy, err := egress.NewPolicy(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	pool := egress.NewPool("caddy-notify/test")
	defer pool.Close()
	files := &Spool{MaxSize: 1, MaxCount: 2}
	defer files.Close()
	if _, err := files.Fetch(t.Context(), pool, nil, s.URL, ""); err != nil {
		t.Fatal(err)
	}
	_, err = files.Fetch(t.Context(), pool, policy, s.URL, "")
	if _, ok := errors.AsType[*egress.BlockedError](err); !ok || hits.Load() != 1 {
		t.Errorf("%v, %d hits", err, hits.Load())
	}
}

func TestLimits(t *testing.T) {
	files := &Spool{MaxSize: 2 << 20, MaxCount: 3, Dir: t.TempDir()}
	defer files.Close()
	for _, size := range []int{0, 2 << 20} {
		a, err := files.Add("", "", bytes.NewReader(make([]byte, size)))
		if err != nil || a.Size != int64(size) || !strings.HasPrefix(a.Name, "attachment") {
			t.Error(a, err)
		}
	}
	if _, err := files.Add("a", "", bytes.NewReader(make([]byte, 2<<20+1))); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
	if _, err := files.Add("a", "", strings.NewReader("")); !errors.Is(err, ErrTooMany) {
		t.Error(err)
	}
	small := &Spool{MaxSize: 3, MaxCount: 1}
	if _, err := small.Add("a", "", strings.NewReader("1234")); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
}

// TestWithoutMemory checks that files are stored on disk when the memory
// is used up, also within a file, and that their content is right.
func TestWithoutMemory(t *testing.T) {
	var memory memory.Budget
	allocation := memory.Allocation(1<<20, false) // half of it for files
	dir := t.TempDir()
	files := &Spool{MaxSize: 2 << 20, MaxCount: 10, Dir: dir, Memory: &allocation}
	var attachments []*notifier.Attachment
	for i := range 10 {
		content := bytes.Repeat([]byte{'a' + byte(i)}, 100_000*i)
		a, err := files.Add("", "", iotest.HalfReader(bytes.NewReader(content)))
		if err != nil {
			t.Fatal(err)
		}
		attachments = append(attachments, a)
	}
	if n := memory.Held(); n > 512<<10 || n < 300_000 {
		t.Errorf("%d bytes are in memory", n)
	}
	if n := len(files.files); n < 5 || n > 8 {
		t.Errorf("%d files are on disk", n)
	}
	for i, a := range attachments {
		got, err := io.ReadAll(a.Open())
		if err != nil || !bytes.Equal(got, bytes.Repeat([]byte{'a' + byte(i)}, 100_000*i)) || a.Size != int64(len(got)) {
			t.Errorf("file %d: %d bytes, %v", i, len(got), err)
		}
		if i > 0 && !strings.HasPrefix(a.ContentType, "text/plain") {
			t.Errorf("file %d: %s", i, a.ContentType)
		}
	}
	_ = files.Close()
	allocation.Close()
	if n := memory.Held(); n != 0 {
		t.Errorf("%d bytes are held after the end", n)
	}
}

// TestStorageError checks that a file that cannot be stored is not the client's error, and that a
// file that cannot be read is not an error of the disk.
func TestStorageError(t *testing.T) {
	gone := &Spool{MaxSize: 4 << 20, MaxCount: 10, Dir: t.TempDir() + "/gone"}
	_, err := gone.Add("", "", bytes.NewReader(make([]byte, 2<<20)))
	if e, ok := errors.AsType[*StorageError](err); !ok || !errors.Is(e, fs.ErrNotExist) ||
		strings.Contains(err.Error(), gone.Dir) || !strings.Contains(e.Err.Error(), gone.Dir) {
		t.Errorf("without a folder: %v", err)
	}
	files := &Spool{MaxSize: 4 << 20, MaxCount: 10, Dir: t.TempDir()}
	for _, size := range []int{1, 2 << 20} {
		broken := io.MultiReader(bytes.NewReader(make([]byte, size)), iotest.ErrReader(io.ErrUnexpectedEOF))
		_, err := files.Add("", "", broken)
		if _, ok := errors.AsType[*StorageError](err); ok || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	_ = files.Close()
}
