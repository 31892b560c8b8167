package mail

import (
	"crypto/rand"
	"io"
	"mime/quotedprintable"
)

// Part is a MIME entity (RFC 2045): header fields, each with a line break, and a
// function that writes the body. It can be written more than once. The output is
// ASCII, in lines that end in CR LF.
type Part struct {
	Header string
	Body   func(w io.Writer) error
}

// Write writes the header and the body.
func (p Part) Write(w io.Writer) error {
	if _, err := io.WriteString(w, p.Header+"\r\n"); err != nil {
		return err
	}
	return p.Body(w)
}

// TextPart returns a part with a text; subtype is plain or html.
func TextPart(subtype, text string) Part {
	return Part{
		"Content-Type: text/" + subtype + "; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n",
		func(w io.Writer) error {
			q := quotedprintable.NewWriter(w)
			if _, err := io.WriteString(q, text); err != nil {
				return err
			}
			return q.Close()
		},
	}
}

// RawPart returns a part with a body that is ASCII already.
func RawPart(header string, body string) Part {
	return Part{header, func(w io.Writer) error {
		_, err := io.WriteString(w, body)
		return err
	}}
}

// Multipart returns a part that consists of parts; subtype is the text after
// "multipart/", with parameters.
func Multipart(subtype string, parts ...Part) Part {
	boundary := rand.Text()
	return Part{
		"Content-Type: multipart/" + subtype + ";\r\n boundary=" + boundary + "\r\n",
		func(w io.Writer) error {
			for _, p := range parts {
				if _, err := io.WriteString(w, "--"+boundary+"\r\n"); err != nil {
					return err
				}
				if err := p.Write(w); err != nil {
					return err
				}
				if _, err := io.WriteString(w, "\r\n"); err != nil {
					return err
				}
			}
			_, err := io.WriteString(w, "--"+boundary+"--\r\n")
			return err
		},
	}
}
