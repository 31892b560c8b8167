package caddyhttp

import (
	"errors"
	"io"
	"math"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// maxParts is how many parts a multipart form may have.
const maxParts = 1000

// payloadPart is the name of the part that holds the fields as JSON.
const payloadPart = "payload"

// readMultipart reads a multipart form (RFC 7578) as it comes in. Every part
// with a file name is an attachment, whatever its own name. The fields of a
// part payload of type application/json win over those of parts of their own.
//
// The texts together, the JSON included, may be as long as max_body says, and
// each file as max_size says.
func readMultipart(w http.ResponseWriter, r *http.Request, boundary string, rules *rules, spool *notifier.Spool) (payload, error) {
	if boundary == "" {
		return payload{}, badRequest("the Content-Type multipart/form-data lacks its boundary")
	}
	most := rules.maxMultipart()
	if r.ContentLength > most {
		return payload{}, readError(&http.MaxBytesError{Limit: most})
	}
	f := &multipartReader{rules: rules, spool: spool, left: rules.maxBody, p: payload{fields: map[string]field{}}}
	parts := multipart.NewReader(http.MaxBytesReader(w, r.Body, most), boundary)
	for n := 0; ; n++ {
		part, err := parts.NextPart()
		if err == io.EOF {
			break
		}
		if err != nil {
			return payload{}, multipartError(err)
		}
		if n == maxParts {
			return payload{}, badRequest("the form has more than %d parts", maxParts)
		}
		if err := f.read(part); err != nil {
			return payload{}, err
		}
	}
	for name, value := range f.json {
		if !value.absent() {
			f.p.fields[name] = value
		}
	}
	return f.p, nil
}

// maxMultipart is how large a multipart request may be: its texts, its files,
// and the headers and boundaries of its parts.
func (r *rules) maxMultipart() int64 {
	const perPart = 1 << 10
	n := int64(r.maxCount)
	if n > 0 && r.maxSize > (math.MaxInt64-r.maxBody-maxParts*perPart)/n {
		return math.MaxInt64
	}
	return r.maxSize*n + r.maxBody + maxParts*perPart
}

// multipartReader collects what the parts of a form hold.
type multipartReader struct {
	rules *rules
	spool *notifier.Spool
	left  int64 // how many bytes of text there may still be
	p     payload
	json  map[string]field // of the part payload
}

func (f *multipartReader) read(part *multipart.Part) error {
	name, file := part.FormName(), part.FileName()
	media, _, _ := mime.ParseMediaType(part.Header.Get("Content-Type"))
	if file != "" && !(name == payloadPart && isJSON(media)) {
		a, err := f.rules.add(f.spool, shownName(file)+" of the form", file, part.Header.Get("Content-Type"), part)
		if err != nil {
			return err
		}
		f.p.files = append(f.p.files, a)
		return nil
	}
	text, err := f.text(part)
	if err != nil {
		return err
	}
	if name == payloadPart && isJSON(media) {
		if f.json != nil {
			return badRequest("the form has more than one part payload")
		}
		f.json, err = readJSON([]byte(text))
		return err
	}
	f.p.fields[name] = field{texts: append(f.p.fields[name].texts, text)}
	return nil
}

// shownName is the name of a file for an error.
func shownName(file string) string {
	return clip(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control) {
			return -1
		}
		return r
	}, file), 100)
}

// text reads a part that is no file.
func (f *multipartReader) text(part io.Reader) (string, error) {
	var b strings.Builder
	n, err := io.Copy(&b, io.LimitReader(part, f.left+1))
	if err != nil {
		return "", multipartError(err)
	}
	if f.left -= n; f.left < 0 {
		return "", readError(&http.MaxBytesError{Limit: f.rules.maxBody})
	}
	if !utf8.ValidString(b.String()) {
		return "", badRequest("a part of the form that is no file is not UTF-8")
	}
	return b.String(), nil
}

// multipartError tells a form that is malformed from one that could not be
// read.
func multipartError(err error) error {
	if e := readError(err); e.status != http.StatusBadRequest {
		return e
	}
	if errors.Is(err, multipart.ErrMessageTooLarge) {
		return refuse(http.StatusRequestEntityTooLarge, "a part of the form has too many headers")
	}
	return badRequest("the multipart form is malformed, or ends before its last boundary")
}
