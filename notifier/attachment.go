package notifier

import (
	"bytes"
	"io"
	"mime"
	"net/http"
	"path"
	"strings"
)

// Attachment is a file of a message. All destinations read the same copy,
// several of them at once.
type Attachment struct {
	Name        string // without a path
	ContentType string // never empty
	Size        int64  // in bytes

	data io.ReaderAt
	body *Body // instead of data
}

// NewAttachment returns an attachment of bytes in memory. If contentType is
// empty, invalid or application/octet-stream, it is derived from the name's
// extension or else from the first bytes. A name without an extension gets the type's extension.
func NewAttachment(name, contentType string, data []byte) *Attachment {
	a := &Attachment{Name: name, ContentType: contentType, Size: int64(len(data)), data: bytes.NewReader(data)}
	a.findType(data)
	a.nameByType()
	return a
}

// NewAttachmentAt returns an attachment of size bytes that data holds. It finds
// the content type as [NewAttachment] does, from start instead of data: start is
// the beginning of the content, of which [AttachmentStart] bytes are enough, or
// nil if contentType is known. data must be readable until the last delivery has
// ended.
func NewAttachmentAt(name, contentType string, size int64, start []byte, data io.ReaderAt) *Attachment {
	a := &Attachment{Name: name, ContentType: contentType, Size: size, data: data}
	a.findType(start)
	a.nameByType()
	return a
}

// ComposedAttachment returns an attachment with the content of body, which is
// composed while it is read.
func ComposedAttachment(name string, body *Body) *Attachment {
	return &Attachment{Name: name, ContentType: body.ContentType, Size: body.size, body: body}
}

// AttachmentStart is the number of bytes at the start of an attachment from which its content type
// is found. [http.DetectContentType] considers no more.
const AttachmentStart = 512

// maxContentType is the maximum length of a content type in bytes. A Word document's has 71.
const maxContentType = 255

// findType sets the content type, unless the given one is specific. start is
// the beginning of the content.
func (a *Attachment) findType(start []byte) {
	// Format it again: it is used in headers and forms of requests, and a client may have put line
	// breaks in place of spaces.
	if t, params, err := mime.ParseMediaType(a.ContentType); err == nil && strings.Contains(t, "/") && t != "application/octet-stream" {
		if t = mime.FormatMediaType(t, params); t != "" && len(t) <= maxContentType {
			a.ContentType = t
			return
		}
	}
	if a.ContentType = typeOfName(a.Name); a.ContentType == "" {
		a.ContentType = http.DetectContentType(start[:min(len(start), AttachmentStart)])
	}
	if t, _, err := mime.ParseMediaType(a.ContentType); err == nil {
		a.ContentType = t
	}
}

// typeOfName returns the content type for the extension of a name, or "". The table has precedence
// over package mime, whose types depend on the machine.
func typeOfName(name string) string {
	ext := strings.ToLower(path.Ext(name))
	if t := typesByExtension[ext]; t != "" {
		return t
	}
	return mime.TypeByExtension(ext)
}

// Rename changes the name. A type found only by the content becomes the type of the new extension,
// and a name without an extension gets the type's extension.
func (a *Attachment) Rename(name string) {
	a.Name = AttachmentName(name, 1)
	t, _, err := mime.ParseMediaType(typeOfName(a.Name))
	if err == nil && (a.ContentType == "application/octet-stream" || a.ContentType == "text/plain") {
		a.ContentType = t
	}
	a.nameByType()
}

var typesByExtension = map[string]string{
	".txt": "text/plain", ".log": "text/plain", ".csv": "text/csv", ".md": "text/markdown", ".html": "text/html",
	".json": "application/json", ".xml": "application/xml", ".pdf": "application/pdf", ".zip": "application/zip",
	".gz": "application/gzip", ".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif",
	".webp": "image/webp", ".svg": "image/svg+xml", ".mp3": "audio/mpeg", ".ogg": "audio/ogg", ".oga": "audio/ogg",
	".wav": "audio/x-wav", ".m4a": "audio/mp4", ".mp4": "video/mp4",
	".webm": "video/webm", ".mkv": "video/x-matroska", ".mov": "video/quicktime",
	".avi": "video/x-msvideo",
}

// Open returns a reader of the file from its start.
func (a *Attachment) Open() io.Reader {
	if a.body != nil {
		return a.body.open()
	}
	return io.NewSectionReader(a.data, 0, a.Size)
}

// ReaderAt returns the content for reading at any place, or nil if the
// attachment is a [ComposedAttachment].
func (a *Attachment) ReaderAt() io.ReaderAt { return a.data }

// MediaType returns the part of the content type before the slash: image, audio,
// video, text or application (RFC 6838, section 4.2).
func (a *Attachment) MediaType() string {
	media, _, _ := strings.Cut(a.ContentType, "/")
	return media
}
