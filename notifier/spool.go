package notifier

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// Spool stores the attachments of one request until Close: those of up to 1 MiB
// in memory, larger ones in temporary files.
type Spool struct {
	// MaxSize is the size of an attachment in bytes.
	MaxSize int64
	// MaxCount is the number of attachments. 0 allows none.
	MaxCount int
	// Dir is the folder for temporary files. "" means [os.TempDir].
	Dir string

	mu    sync.Mutex
	count int
	files []*os.File
}

// maxInMemory is the size up to which an attachment stays in memory.
const maxInMemory = 1 << 20

// Errors of [Spool.Add] and [Spool.Fetch].
var (
	ErrAttachmentTooLarge = errors.New("the attachment is larger than allowed")
	ErrTooManyAttachments = errors.New("there are more attachments than allowed")
)

// Add reads r to its end and stores it as an attachment. An empty name becomes
// attachment.001 and so on. A path is reduced to its last element. The error is
// [ErrAttachmentTooLarge] or [ErrTooManyAttachments] if a limit is exceeded.
func (s *Spool) Add(name, contentType string, r io.Reader) (*Attachment, error) {
	number := s.next()
	if number > s.MaxCount {
		return nil, ErrTooManyAttachments
	}
	a := &Attachment{Name: attachmentName(name, number), ContentType: contentType}
	head := make([]byte, 0, 32<<10)
	buf := bytes.NewBuffer(head)
	n, err := io.CopyN(buf, r, min(maxInMemory, s.MaxSize)+1)
	if err != nil && err != io.EOF {
		return nil, fmt.Errorf("reading attachment: %w", err)
	}
	if n > s.MaxSize {
		return nil, ErrAttachmentTooLarge
	}
	if n <= maxInMemory {
		a.Size, a.data = n, bytes.NewReader(buf.Bytes())
		a.findType(buf.Bytes())
		return a, nil
	}
	f, err := os.CreateTemp(s.Dir, "notify-*")
	if err != nil {
		return nil, fmt.Errorf("storing attachment: %w", errs.WithoutPath(err))
	}
	s.mu.Lock()
	s.files = append(s.files, f)
	s.mu.Unlock()
	// If the system allows it, remove the name at once, so that a crash leaves
	// no file behind.
	_ = os.Remove(f.Name())
	start := buf.Bytes()
	a.findType(start)
	if _, err := f.Write(start); err != nil {
		return nil, fmt.Errorf("storing attachment: %w", errs.WithoutPath(err))
	}
	more, err := io.Copy(f, io.LimitReader(r, s.MaxSize-n+1))
	if err != nil {
		return nil, fmt.Errorf("storing attachment: %w", errs.WithoutPath(err))
	}
	if n+more > s.MaxSize {
		return nil, ErrAttachmentTooLarge
	}
	a.Size, a.data = n+more, f
	return a, nil
}

// next returns the number of the next attachment, from 1. The lock is not held
// while an attachment is read, because several are read at once.
func (s *Spool) next() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	return s.count
}

// Close removes the temporary files. Attachments cannot be read afterwards.
func (s *Spool) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.files {
		_ = f.Close()
		_ = os.Remove(f.Name())
	}
	s.files = nil
	return nil
}

// attachmentName returns name in a form that is safe as the name of a file and
// in a header. n is the number of the attachment.
func attachmentName(name string, n int) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case r == '\\':
			return '/'
		case unicode.IsControl(r) || r == utf8.RuneError || unicode.In(r, unicode.Bidi_Control):
			return -1
		}
		return r
	}, name)
	name = strings.TrimSpace(path.Base(name))
	if name == "" || name == "." || name == "/" || name == ".." {
		return fmt.Sprintf("attachment.%03d", n)
	}
	for range utf8.RuneCountInString(name) - 250 { // keep the end with the extension
		_, size := utf8.DecodeRuneInString(name)
		name = name[size:]
	}
	return name
}

// Fetch adds the file at an http or https address, which policy must allow. The
// attachment's name is name or else, in this order, the parameter "name" of the
// address, the file name in the answer's Content-Disposition, or the last
// element of the path.
func (s *Spool) Fetch(ctx context.Context, pool *egress.Pool, policy *egress.Policy, address, name string) (*Attachment, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("an attachment's address begins with http:// or https:// and a host")
	}
	q := u.Query()
	if name == "" {
		name = q.Get("name")
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	resp, err := pool.Get(ctx, u, egress.Options{Policy: policy, FollowRedirects: true, ConnectTimeout: 10 * time.Second})
	if err != nil {
		return nil, fmt.Errorf("fetching attachment: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return nil, fmt.Errorf("fetching attachment: the server answered %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	if resp.ContentLength > s.MaxSize {
		return nil, ErrAttachmentTooLarge
	}
	if name == "" {
		if _, params, err := mime.ParseMediaType(resp.Header.Get("Content-Disposition")); err == nil {
			name = params["filename"]
		}
	}
	if name == "" {
		name = path.Base(u.Path)
	}
	return s.Add(name, resp.Header.Get("Content-Type"), resp.Body)
}
