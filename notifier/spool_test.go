package notifier

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/caddy-notify/caddy-notify/notifier/memory"
)

// TestAttachments checks that ten destinations read a large file from one copy,
// which Close removes.
func TestAttachments(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789abcdef"), 200_000)
	want := sha256.Sum256(content)
	var good atomic.Int32
	base := target(t, func(w http.ResponseWriter, r *http.Request) {
		f, h, err := r.FormFile("file")
		if err != nil {
			t.Error(err)
			return
		}
		hash := sha256.New()
		_, _ = io.Copy(hash, f)
		if [32]byte(hash.Sum(nil)) == want && h.Filename == "log.bin" {
			good.Add(1)
		}
	})
	dir := t.TempDir()
	spool := &Spool{MaxSize: 10 << 20, MaxCount: 2, Dir: dir}
	a, err := spool.Add("../../log.bin", "", bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	var urls []string
	for i := range 10 {
		urls = append(urls, fmt.Sprintf("%s/tok%d", base, i))
	}
	m := *hello
	m.Attachments = []*Attachment{a}
	if report := send(t, newTestSender(t), &m, Options{}, urls...); !report.OK() || good.Load() != 10 {
		t.Errorf("%d of 10 got the file: %v", good.Load(), report.Results)
	}
	if err := spool.Close(); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%d temporary files are left", len(left))
	}
	if _, err := io.ReadAll(a.Open()); err == nil {
		t.Error("the file can be read after Close")
	}
}

func TestSpoolLimits(t *testing.T) {
	spool := &Spool{MaxSize: 2 << 20, MaxCount: 3, Dir: t.TempDir()}
	defer spool.Close()
	for _, size := range []int{0, 2 << 20} {
		a, err := spool.Add("", "", bytes.NewReader(make([]byte, size)))
		if err != nil || a.Size != int64(size) || !strings.HasPrefix(a.Name, "attachment.00") {
			t.Error(a, err)
		}
	}
	if _, err := spool.Add("a", "", bytes.NewReader(make([]byte, 2<<20+1))); !errors.Is(err, ErrAttachmentTooLarge) {
		t.Error(err)
	}
	if _, err := spool.Add("a", "", strings.NewReader("")); !errors.Is(err, ErrTooManyAttachments) {
		t.Error(err)
	}
	small := &Spool{MaxSize: 3, MaxCount: 1}
	if _, err := small.Add("a", "", strings.NewReader("1234")); !errors.Is(err, ErrAttachmentTooLarge) {
		t.Error(err)
	}
}

func TestAttachmentName(t *testing.T) {
	for in, want := range map[string]string{
		"a.txt": "a.txt", "../../etc/passwd": "passwd", `C:\temp\x.log`: "x.log", "": "attachment.007", "..": "attachment.007",
		"a\r\nContent-Type: x": "aContent-Type: x", "a\x00b": "ab", "/": "attachment.007", "\u202egnp.exe": "gnp.exe",
		strings.Repeat("é", 300) + ".png": strings.Repeat("é", 246) + ".png",
	} {
		if got := attachmentName(in, 7); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// TestSpoolWithoutMemory checks that files are stored on disk when the memory
// is used up, also within a file, and that their content is right.
func TestSpoolWithoutMemory(t *testing.T) {
	var memory memory.Budget
	allocation := memory.Allocation(1<<20, false) // half of it for files
	dir := t.TempDir()
	spool := &Spool{MaxSize: 2 << 20, MaxCount: 10, Dir: dir, Memory: &allocation}
	var files []*Attachment
	for i := range 10 {
		content := bytes.Repeat([]byte{'a' + byte(i)}, 100_000*i)
		a, err := spool.Add("", "", iotest.HalfReader(bytes.NewReader(content)))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, a)
	}
	if n := memory.Held(); n > 512<<10 || n < 300_000 {
		t.Errorf("%d bytes are in memory", n)
	}
	if n := len(spool.files); n < 5 || n > 8 {
		t.Errorf("%d files are on disk", n)
	}
	for i, a := range files {
		got, err := io.ReadAll(a.Open())
		if err != nil || !bytes.Equal(got, bytes.Repeat([]byte{'a' + byte(i)}, 100_000*i)) || a.Size != int64(len(got)) {
			t.Errorf("file %d: %d bytes, %v", i, len(got), err)
		}
		if i > 0 && !strings.HasPrefix(a.ContentType, "text/plain") {
			t.Errorf("file %d: %s", i, a.ContentType)
		}
	}
	_ = spool.Close()
	allocation.Close()
	if n := memory.Held(); n != 0 {
		t.Errorf("%d bytes are held after the end", n)
	}
}

// TestStorageError checks that a file that cannot be stored is not the client's
// error, and that one that cannot be read is not an error of the disk.
func TestStorageError(t *testing.T) {
	gone := &Spool{MaxSize: 4 << 20, MaxCount: 10, Dir: t.TempDir() + "/gone"}
	_, err := gone.Add("", "", bytes.NewReader(make([]byte, 2<<20)))
	if e, ok := errors.AsType[*StorageError](err); !ok || !errors.Is(e, fs.ErrNotExist) || strings.Contains(err.Error(), gone.Dir) || !strings.Contains(e.Err.Error(), gone.Dir) {
		t.Errorf("without a folder: %v", err)
	}
	spool := &Spool{MaxSize: 4 << 20, MaxCount: 10, Dir: t.TempDir()}
	for _, size := range []int{1, 2 << 20} {
		broken := io.MultiReader(bytes.NewReader(make([]byte, size)), iotest.ErrReader(io.ErrUnexpectedEOF))
		_, err := spool.Add("", "", broken)
		if _, ok := errors.AsType[*StorageError](err); ok || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	_ = spool.Close()
}
