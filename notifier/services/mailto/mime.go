package mailto

import (
	"crypto/rand"
	"io"
	"mime/quotedprintable"
)

// mimePart is a MIME entity (RFC 2045): header fields, each with a line break,
// and a function that writes the body. It can be written more than once. The
// output is ASCII, in lines that end in CR LF.
type mimePart struct {
	header string
	body   func(w io.Writer) error
}

func (p mimePart) write(w io.Writer) error {
	if _, err := io.WriteString(w, p.header+"\r\n"); err != nil {
		return err
	}
	return p.body(w)
}

// mimeText returns a part with a text; subtype is plain or html.
func mimeText(subtype, text string) mimePart {
	return mimePart{
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

// mimeRaw returns a part with a body that is ASCII already.
func mimeRaw(header string, body string) mimePart {
	return mimePart{header, func(w io.Writer) error {
		_, err := io.WriteString(w, body)
		return err
	}}
}

// mimeMulti returns a part that consists of parts; subtype is the text after
// "multipart/", with parameters.
func mimeMulti(subtype string, parts ...mimePart) mimePart {
	boundary := rand.Text()
	return mimePart{
		"Content-Type: multipart/" + subtype + ";\r\n boundary=" + boundary + "\r\n",
		func(w io.Writer) error {
			for _, p := range parts {
				if _, err := io.WriteString(w, "--"+boundary+"\r\n"); err != nil {
					return err
				}
				if err := p.write(w); err != nil {
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
