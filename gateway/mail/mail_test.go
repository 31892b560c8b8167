package mail

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/caddy-notify/caddy-notify/internal/golden"
)

// recorded is the content of a mail.
type recorded struct{ files strings.Builder }

func (k *recorded) store() Store {
	return Store{
		Text: func(r io.Reader) (string, error) {
			b, err := io.ReadAll(r)
			return string(b), err
		},
		File: func(name, contentType string, r io.Reader) error {
			b, err := io.ReadAll(r)
			fmt.Fprintf(&k.files, "file: %q %s %q\n", name, contentType, b)
			return err
		},
	}
}

// TestRead compares the mails in testdata with their golden files.
func TestRead(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.eml")
	if err != nil || len(paths) == 0 {
		t.Fatal("no mails", err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		wire := bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n"))
		var k recorded
		m, err := Read(bytes.NewReader(wire), k.store())
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		got := fmt.Sprintf("subject: %s\nformat: %s\n", m.Subject, m.Format)
		if m.Type != "" {
			got += fmt.Sprintf("type: %s\n", m.Type)
		}
		if m.Thread != "" {
			got += fmt.Sprintf("thread: %s\n", m.Thread)
		}
		if m.UnknownCharset != "" {
			got += fmt.Sprintf("unknown charset: %s\n", m.UnknownCharset)
		}
		got += fmt.Sprintf("%s---\n%s\n", k.files.String(), m.Body)
		golden.Check(t, strings.TrimSuffix(path, ".eml")+".txt", got)
		// The same mail with bare line feeds, as a pipe delivers it, and byte by byte.
		for name, r := range map[string]io.Reader{"line feeds": bytes.NewReader(data), "bytes": iotest.OneByteReader(bytes.NewReader(wire))} {
			m2, err := Read(r, new(recorded).store())
			if err != nil || m2.Subject != m.Subject || m2.Body != m.Body {
				t.Errorf("%s with %s: %v\n%s", path, name, err, m2.Body)
			}
		}
	}
}

// TestReadLimits sends structures that would cost much memory or time.
func TestReadLimits(t *testing.T) {
	nested := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n", i, i)
		}
		return b.String() + "\ndeep\n"
	}
	parts := func(n int) string {
		return "Content-Type: multipart/mixed; boundary=b\n\n" + strings.Repeat("--b\n\nx\n", n) + "--b--\n"
	}
	header := "X: " + strings.Repeat("y", 2*maxHeader) + "\n"
	for name, tt := range map[string]struct {
		mail string
		want error
	}{
		"deep":                         {nested(maxDepth), nil},
		"too deep":                     {nested(maxDepth + 1), ErrTooDeep},
		"far too deep":                 {nested(10_000), ErrTooDeep},
		"parts":                        {parts(maxParts - 1), nil},
		"too many parts":               {parts(maxParts), ErrTooManyParts},
		"a long header":                {header + "\nx", ErrHeader},
		"many fields":                  {strings.Repeat("X: y\n", maxHeader), ErrHeader},
		"a long header of a part":      {"Content-Type: multipart/mixed; boundary=b\n\n--b\n" + header + "\nx\n--b--\n", ErrHeader},
		"a long header without an end": {strings.Repeat("X", 3*maxHeader), nil},
	} {
		if _, err := Read(strings.NewReader(tt.mail), new(recorded).store()); !errors.Is(err, tt.want) {
			t.Errorf("%s: got %v, want %v", name, err, tt.want)
		}
	}
}

// TestReadCut makes sure that a mail that does not arrive completely is an error,
// wherever it is cut: it must not be taken for a shorter mail.
func TestReadCut(t *testing.T) {
	data, err := os.ReadFile("testdata/camera.eml")
	if err != nil {
		t.Fatal(err)
	}
	cut := errors.New("cut")
	for n := range data {
		r := io.MultiReader(bytes.NewReader(data[:n]), iotest.ErrReader(cut))
		if _, err := Read(r, new(recorded).store()); !errors.Is(err, cut) {
			t.Fatalf("cut after %d bytes: got %v", n, err)
		}
	}
}

// TestReadStoreErrors tells an attachment that is left out from one that makes the mail fail.
func TestReadStoreErrors(t *testing.T) {
	data, err := os.ReadFile("testdata/camera.eml")
	if err != nil {
		t.Fatal(err)
	}
	s := new(recorded).store()
	s.File = func(string, string, io.Reader) error { return &LeftOutError{"too large"} }
	m, err := Read(bytes.NewReader(data), s)
	if err != nil || fmt.Sprint(m.LeftOut) != "[logo.png Tür.png]" || m.Reason != "too large" || m.Body != "Motion at the door." {
		t.Errorf("left out: %v: %+v", err, m)
	}
	full := errors.New("disk full")
	s.File = func(string, string, io.Reader) error { return full }
	if _, err := Read(bytes.NewReader(data), s); !errors.Is(err, full) {
		t.Errorf("got %v, want %v", err, full)
	}
}

func FuzzRead(f *testing.F) {
	paths, err := filepath.Glob("testdata/*.eml")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Read(bytes.NewReader(data), new(recorded).store())
		if err != nil {
			if !errors.Is(err, ErrTooDeep) && !errors.Is(err, ErrTooManyParts) && !errors.Is(err, ErrHeader) {
				t.Errorf("a mistake in a mail is an error: %v", err)
			}
			return
		}
		if strings.ToValidUTF8(m.Subject+m.Body, "") != m.Subject+m.Body {
			t.Errorf("not UTF-8: %q %q", m.Subject, m.Body)
		}
		if strings.ContainsAny(m.Subject, "\r\n") {
			t.Errorf("a subject of several lines: %q", m.Subject)
		}
	})
}
