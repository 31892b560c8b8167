package notifier

import (
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
)

// AttachmentName returns name in a form that is safe as the name of a file and
// in a header: the last element of a path, without control characters, and of at
// most 250 characters. If nothing is left of it, AttachmentName returns
// attachment or, from the second on, attachment-2 and so on, with n as the number.
func AttachmentName(name string, n int) string {
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
		if n > 1 {
			return fmt.Sprintf("attachment-%d", n)
		}
		return "attachment"
	}
	for range utf8.RuneCountInString(name) - 250 { // keep the end with the extension
		_, size := utf8.DecodeRuneInString(name)
		name = name[size:]
	}
	return name
}

// nameByType adds the extension of the content type to a name that has none. Services and their
// clients identify a file's type by its name.
func (a *Attachment) nameByType() {
	if hasExtension.MatchString(a.Name) {
		return
	}
	if e := Extension(a.ContentType); e != unknownExtension || unnamed.MatchString(a.Name) {
		a.Name = strings.TrimRight(a.Name, ".") + e
	}
}

// unnamed matches the names that AttachmentName gives to nameless files.
var unnamed = lazyregexp.New(`^attachment(-\d+)?$`)

// hasExtension matches names with an extension. The end of a date or of a sentence after a full
// stop is not an extension.
var hasExtension = lazyregexp.New(`\.[0-9]*[A-Za-z][A-Za-z0-9_~-]*$`)

// TypeName returns the name of a file that was taken from an address. It adds the extension of a
// picture, a sound or a film if name has another one: cameras answer snap.cgi with a picture.
func TypeName(name, contentType string) string {
	media, _, _ := strings.Cut(contentType, ";")
	kind, _, _ := strings.Cut(media, "/")
	extension := Extension(strings.ToLower(strings.TrimSpace(media)))
	switch of, _, _ := strings.Cut(typeOfName(name), "/"); {
	case kind != "image" && kind != "audio" && kind != "video", of == kind,
		!hasExtension.MatchString(name), strings.HasSuffix(strings.ToLower(name), extension):
		return name
	}
	return name + extension
}

// Extension returns the usual extension of files of a type, with its full stop.
func Extension(media string) string {
	media, _, _ = strings.Cut(media, ";")
	kind, sub, _ := strings.Cut(media, "/")
	switch {
	case extensions[media] != "":
		return "." + extensions[media]
	case strings.HasSuffix(sub, "+xml"):
		return ".xml"
	case strings.HasSuffix(sub, "+json"):
		return ".json"
	case kind == "image" || kind == "audio" || kind == "video":
		if sub = strings.TrimPrefix(sub, "x-"); shortWord.MatchString(sub) {
			return "." + sub
		}
	case kind == "text" || kind == "message":
		return ".txt"
	}
	return unknownExtension
}

// unknownExtension is the extension of files of an unknown type.
const unknownExtension = ".bin"

// shortWord matches types of media that are their own extension.
var shortWord = lazyregexp.New(`^[a-z0-9]{2,5}$`)

// extensions has the extensions of common types. The extensions of package mime depend on the
// machine.
var extensions = map[string]string{
	"application/gzip": "gz", "application/ics": "ics", "application/json": "json", "application/msword": "doc", "application/pdf": "pdf",
	"application/pgp-encrypted": "asc", "application/pgp-keys": "asc", "application/rtf": "rtf", "application/vnd.ms-excel": "xls",
	"application/vnd.ms-powerpoint":                  "ppt",
	"application/vnd.oasis.opendocument.spreadsheet": "ods", "application/vnd.oasis.opendocument.text": "odt",
	"application/vnd.openxmlformats-officedocument.presentationml.presentation": "pptx",
	"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet":         "xlsx",
	"application/vnd.openxmlformats-officedocument.wordprocessingml.document":   "docx",
	"application/x-gzip": "gz", "application/xml": "xml", "application/zip": "zip", "application/x-zip-compressed": "zip",
	"audio/mpeg": "mp3", "audio/mp4": "m4a", "audio/wave": "wav", "audio/x-wav": "wav",
	"image/jpeg": "jpg", "image/pjpeg": "jpg", "image/svg+xml": "svg", "image/tiff": "tiff", "image/vnd.microsoft.icon": "ico",
	"message/rfc822": "eml", "text/calendar": "ics", "text/csv": "csv", "text/html": "html", "text/markdown": "md", "text/rtf": "rtf",
	"text/vcard": "vcf", "text/x-vcard": "vcf", "text/xml": "xml",
	"video/3gpp": "3gp", "video/mpeg": "mpg", "video/quicktime": "mov", "video/x-msvideo": "avi",
	"video/x-matroska": "mkv",
}
