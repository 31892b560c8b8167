package notifier

import (
	"bytes"
	"context"
	"encoding/base64"
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

	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// Attachment is a file that goes along with a message. It can be read as
// often as there are destinations, by several of them at once, from one copy.
type Attachment struct {
	Name        string // without a path
	ContentType string // never empty
	Size        int64  // in bytes

	data io.ReaderAt
	body *Body // in place of data
}

// NewAttachment makes an attachment of bytes in memory. The content type is
// found out where it is empty or application/octet-stream: from the name's
// extension, else from the first bytes.
func NewAttachment(name, contentType string, data []byte) *Attachment {
	a := &Attachment{Name: name, ContentType: contentType, Size: int64(len(data)), data: bytes.NewReader(data)}
	a.findType(data)
	return a
}

// ComposedAttachment makes an attachment that consists of what body does, and
// is put together as it is read.
func ComposedAttachment(name string, body *Body) *Attachment {
	return &Attachment{Name: name, ContentType: body.ContentType, Size: body.size, body: body}
}

// maxContentType is how long a content type may be, in bytes; that of a Word
// document has 71.
const maxContentType = 255

func (a *Attachment) findType(start []byte) {
	// It is written anew, because it goes into headers and forms of requests,
	// and what a client says may hold line breaks where spaces may be.
	if t, params, err := mime.ParseMediaType(a.ContentType); err == nil && strings.Contains(t, "/") && t != "application/octet-stream" {
		if t = mime.FormatMediaType(t, params); t != "" && len(t) <= maxContentType {
			a.ContentType = t
			return
		}
	}
	// A short table of our own first, since what the mime package knows
	// depends on the machine.
	ext := strings.ToLower(path.Ext(a.Name))
	if t := typesByExtension[ext]; t != "" {
		a.ContentType = t
	} else if t := mime.TypeByExtension(ext); t != "" {
		a.ContentType = t
	} else {
		a.ContentType = http.DetectContentType(start[:min(len(start), 512)])
	}
	if t, _, err := mime.ParseMediaType(a.ContentType); err == nil {
		a.ContentType = t
	}
}

var typesByExtension = map[string]string{
	".txt": "text/plain", ".log": "text/plain", ".csv": "text/csv", ".md": "text/markdown", ".html": "text/html",
	".json": "application/json", ".xml": "application/xml", ".pdf": "application/pdf", ".zip": "application/zip",
	".gz": "application/gzip", ".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif",
	".webp": "image/webp", ".svg": "image/svg+xml", ".mp3": "audio/mpeg", ".ogg": "audio/ogg", ".oga": "audio/ogg",
	".wav": "audio/x-wav", ".m4a": "audio/mp4", ".mp4": "video/mp4", ".webm": "video/webm", ".mkv": "video/x-matroska", ".mov": "video/quicktime",
	".avi": "video/x-msvideo",
}

// Open begins to read the file from its start.
func (a *Attachment) Open() io.Reader {
	if a.body != nil {
		return a.body.open()
	}
	return io.NewSectionReader(a.data, 0, a.Size)
}

// Kind is the part of the content type before the slash: image, audio, video,
// text or application.
func (a *Attachment) Kind() string {
	kind, _, _ := strings.Cut(a.ContentType, "/")
	return kind
}

// Spool keeps the attachments of one request: small ones in memory, larger
// ones in a temporary file, until Close.
type Spool struct {
	// MaxSize is how many bytes one attachment may have.
	MaxSize int64
	// MaxCount is how many attachments there may be; 0 for none at all.
	MaxCount int
	// Dir is where temporary files go; "" for the system's folder.
	Dir string

	mu    sync.Mutex
	count int
	files []*os.File
}

// memoryAttachment is the size up to which an attachment stays in memory.
const memoryAttachment = 1 << 20

// Errors of [Spool.Add] and [Spool.Fetch] that a caller may tell apart.
var (
	ErrAttachmentTooLarge = errors.New("the attachment is larger than allowed")
	ErrTooManyAttachments = errors.New("there are more attachments than allowed")
)

// Add reads r to its end and keeps it as an attachment. An empty name becomes
// attachment.001 and so on; of a path only the last part is kept.
func (s *Spool) Add(name, contentType string, r io.Reader) (*Attachment, error) {
	number := s.next()
	if number > s.MaxCount {
		return nil, ErrTooManyAttachments
	}
	a := &Attachment{Name: attachmentName(name, number), ContentType: contentType}
	head := make([]byte, 0, 32<<10)
	buf := bytes.NewBuffer(head)
	n, err := io.CopyN(buf, r, min(memoryAttachment, s.MaxSize)+1)
	if err != nil && err != io.EOF {
		return nil, fmt.Errorf("reading attachment: %w", err)
	}
	if n > s.MaxSize {
		return nil, ErrAttachmentTooLarge
	}
	if n <= memoryAttachment {
		a.Size, a.data = n, bytes.NewReader(buf.Bytes())
		a.findType(buf.Bytes())
		return a, nil
	}
	f, err := os.CreateTemp(s.Dir, "notify-*")
	if err != nil {
		return nil, fmt.Errorf("storing attachment: %w", withoutPath(err))
	}
	s.mu.Lock()
	s.files = append(s.files, f)
	s.mu.Unlock()
	// Where the system allows it, the name goes at once, so that not even a
	// crash leaves a file behind.
	_ = os.Remove(f.Name())
	start := buf.Bytes()
	a.findType(start)
	if _, err := f.Write(start); err != nil {
		return nil, fmt.Errorf("storing attachment: %w", withoutPath(err))
	}
	more, err := io.Copy(f, io.LimitReader(r, s.MaxSize-n+1))
	if err != nil {
		return nil, fmt.Errorf("storing attachment: %w", withoutPath(err))
	}
	if n+more > s.MaxSize {
		return nil, ErrAttachmentTooLarge
	}
	a.Size, a.data = n+more, f
	return a, nil
}

// next counts the attachments. The lock is not held while one is read, since
// several may come in at once.
func (s *Spool) next() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	return s.count
}

// withoutPath drops the name of a file from an error, which tells a client
// more about the machine than it needs.
func withoutPath(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
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

// attachmentName makes a name safe to be a file's name and a header's value.
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
	for range utf8.RuneCountInString(name) - 250 { // the end says what it is
		_, size := utf8.DecodeRuneInString(name)
		name = name[size:]
	}
	return name
}

// Fetch gets an attachment from an http or https address. guard says where it
// may lead; the name is name, or the address's parameter "name", or what the
// server calls the file, or the end of the path.
func (s *Spool) Fetch(ctx context.Context, pool *egress.Pool, guard *egress.Policy, address, name string) (*Attachment, error) {
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
	resp, err := pool.Get(ctx, u, egress.Options{Policy: guard, FollowRedirects: true, ConnectTimeout: 10 * time.Second})
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

// base64Size is the length of the encoding of n bytes.
func base64Size(n int64) int64 { return (n + 2) / 3 * 4 }

// base64Reader encodes as it is read, so that no destination holds a file's
// encoding in memory.
type base64Reader struct {
	r    io.Reader
	in   [3 << 10]byte
	out  [4 << 10]byte
	left []byte
	err  error
}

func (b *base64Reader) Read(p []byte) (int, error) {
	if len(b.left) == 0 {
		if b.err != nil {
			return 0, b.err
		}
		n, err := io.ReadFull(b.r, b.in[:])
		if err == io.ErrUnexpectedEOF {
			err = io.EOF
		}
		b.err = err
		base64.StdEncoding.Encode(b.out[:], b.in[:n])
		b.left = b.out[:base64.StdEncoding.EncodedLen(n)]
		if len(b.left) == 0 {
			return 0, b.err
		}
	}
	n := copy(p, b.left)
	b.left = b.left[n:]
	return n, nil
}

// formReader escapes base64 for a form, as it is read.
type formReader struct {
	r    io.Reader
	in   [1 << 10]byte
	out  [3 << 10]byte
	left []byte
	err  error
}

func (f *formReader) Read(p []byte) (int, error) {
	for len(f.left) == 0 {
		if f.err != nil {
			return 0, f.err
		}
		var n int
		n, f.err = f.r.Read(f.in[:])
		f.left = f.out[:0]
		for _, c := range f.in[:n] {
			switch c {
			case '+':
				f.left = append(f.left, "%2B"...)
			case '/':
				f.left = append(f.left, "%2F"...)
			case '=':
				f.left = append(f.left, "%3D"...)
			default:
				f.left = append(f.left, c)
			}
		}
	}
	n := copy(p, f.left)
	f.left = f.left[n:]
	return n, nil
}

// lineLength is how many characters of base64 a line of a mail has.
const lineLength = 76

// lineReader puts a line break before each line but the first.
type lineReader struct {
	r    io.Reader
	in   [lineLength]byte
	out  [2 + lineLength]byte
	left []byte
	more bool
}

func (l *lineReader) Read(p []byte) (int, error) {
	if len(l.left) == 0 {
		n, err := io.ReadFull(l.r, l.in[:])
		if n == 0 {
			return 0, err
		}
		if err != nil && err != io.ErrUnexpectedEOF {
			return 0, err
		}
		l.left = l.out[:0]
		if l.more {
			l.left = append(l.left, "\r\n"...)
		}
		l.left, l.more = append(l.left, l.in[:n]...), true
	}
	n := copy(p, l.left)
	l.left = l.left[n:]
	return n, nil
}
