// Package spool stores the attachments of a request while its message is sent.
package spool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path"
	"sync"

	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
	"github.com/caddy-notify/caddy-notify/notifier/memory"
)

// Spool stores the attachments of one request until Close: attachments of up to 1 MiB in memory,
// larger ones in temporary files.
type Spool struct {
	// MaxSize is the size of an attachment in bytes.
	MaxSize int64
	// MaxCount is the number of attachments. 0 allows none.
	MaxCount int
	// Dir is the folder for temporary files. "" means [os.TempDir].
	Dir string
	// Memory counts the attachments in memory. Attachments that it has no room
	// for go to temporary files. nil means no limit.
	Memory *memory.Allocation

	mu    sync.Mutex
	count int
	files []*os.File
}

// maxInMemory is the size up to which an attachment stays in memory.
const maxInMemory = 1 << 20

// Errors of [Spool.Add] and [Spool.Fetch].
var (
	ErrTooLarge = errors.New("the attachment is larger than allowed")
	ErrTooMany  = errors.New("there are more attachments than allowed")
)

// StorageError is returned when a temporary file cannot be written, for example
// because the disk is full.
type StorageError struct {
	Err error // may name the file, unlike the text of the StorageError
}

// Error implements error.
func (e *StorageError) Error() string {
	return "storing attachment: " + errs.WithoutPath(e.Err).Error()
}

// Unwrap returns e.Err.
func (e *StorageError) Unwrap() error { return e.Err }

// Add reads r to its end and stores it as an attachment. An empty name becomes
// attachment, attachment-2 and so on, with the extension of the type. A path is reduced to its last element. The error is
// [ErrTooLarge] or [ErrTooMany] if a limit is exceeded, and a [*StorageError] if
// the attachment cannot be stored.
func (s *Spool) Add(name, contentType string, r io.Reader) (*notifier.Attachment, error) {
	number := s.next()
	if number > s.MaxCount {
		return nil, ErrTooMany
	}
	name = notifier.AttachmentName(name, number)
	c := memory.NewChunks(s.Memory)
	whole, err := c.Fill(r, min(maxInMemory, s.MaxSize))
	if err != nil {
		c.Release()
		return nil, fmt.Errorf("reading attachment: %w", err)
	}
	if whole {
		return notifier.NewAttachmentAt(name, contentType, c.Size(), c.Start(), c), nil
	}
	if c.Size() > s.MaxSize {
		c.Release()
		return nil, ErrTooLarge
	}
	f, err := s.store(c)
	if err != nil {
		return nil, &StorageError{err}
	}
	w := &storageWriter{w: f}
	more, err := io.Copy(w, io.LimitReader(r, s.MaxSize-c.Size()+1))
	switch {
	case w.err != nil:
		return nil, &StorageError{w.err}
	case err != nil:
		return nil, fmt.Errorf("reading attachment: %w", err)
	case c.Size()+more > s.MaxSize:
		return nil, ErrTooLarge
	}
	start := make([]byte, notifier.AttachmentStart)
	n, err := f.ReadAt(start, 0)
	if err != nil && err != io.EOF {
		return nil, &StorageError{err}
	}
	return notifier.NewAttachmentAt(name, contentType, c.Size()+more, start[:n], f), nil
}

// store moves c to a temporary file, which Close removes.
func (s *Spool) store(c *memory.Chunks) (*os.File, error) {
	defer c.Release()
	f, err := os.CreateTemp(s.Dir, "notify-*")
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.files = append(s.files, f)
	s.mu.Unlock()
	// If the system allows it, remove the name at once, so that a crash leaves
	// no file behind.
	_ = os.Remove(f.Name())
	_, err = c.WriteTo(f)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// storageWriter records an error of w, to tell it from one of the reader.
type storageWriter struct {
	w   io.Writer
	err error
}

func (s *storageWriter) Write(p []byte) (n int, err error) {
	n, s.err = s.w.Write(p)
	return n, s.err
}

// next returns the number of the next attachment, from 1. The lock is not held
// while an attachment is read, because several are read at once.
func (s *Spool) next() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	return s.count
}

// Close removes the temporary files. Attachments cannot be read afterwards. It
// does not close Memory.
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

// Fetch adds the file at an http or https address, which policy must allow. The
// attachment's name is name or else, in this order, the parameter "name" of the
// address, the file name in the answer's Content-Disposition, or the last
// element of the path. The caller bounds the time with ctx.
func (s *Spool) Fetch(ctx context.Context, pool *egress.Pool, policy *egress.Policy, address, name string) (*notifier.Attachment, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("an attachment's address begins with http:// or https:// and a host")
	}
	q := u.Query()
	if name == "" {
		name = q.Get("name")
	}
	resp, err := pool.Get(ctx, u, egress.Options{Policy: policy, FollowRedirects: true, ConnectTimeout: egress.DefaultConnectTimeout})
	if err != nil {
		return nil, fmt.Errorf("fetching attachment: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return nil, fmt.Errorf("fetching attachment: the server answered %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	if resp.ContentLength > s.MaxSize {
		return nil, ErrTooLarge
	}
	if name == "" {
		if _, params, err := mime.ParseMediaType(resp.Header.Get("Content-Disposition")); err == nil {
			name = params["filename"]
		}
	}
	if name == "" {
		name = notifier.TypeName(path.Base(u.Path), resp.Header.Get("Content-Type"))
	}
	return s.Add(name, resp.Header.Get("Content-Type"), resp.Body)
}
