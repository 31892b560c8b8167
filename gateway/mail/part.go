package mail

import (
	"bufio"
	"strings"

	"github.com/emersion/go-message/textproto"
)

// part is a part of a mail, or a whole mail.
type part struct {
	media       string // text/plain if it is missing or malformed
	params      map[string]string
	disposition string
	name        string        // file name; "" if there is none
	body        *bufio.Reader // without the transfer encoding
}

func newPart(h textproto.Header, body *bufio.Reader) *part {
	p := new(part)
	p.media, p.params = ParseParameters(h.Get("Content-Type"))
	if kind, sub, ok := strings.Cut(p.media, "/"); !ok || kind == "" || sub == "" || strings.Contains(p.media, `"`) {
		p.media = "text/plain"
	}
	var disposition map[string]string
	p.disposition, disposition = ParseParameters(h.Get("Content-Disposition"))
	p.name = fileName(disposition, p.params)
	p.body = body
	if !p.multipart() { // some programs declare an encoding of the whole multipart that no part has
		isText := !p.isFile() && strings.HasPrefix(p.media, "text/")
		p.body = decodeTransfer(h.Get("Content-Transfer-Encoding"), body, isText, p.params["charset"])
	}
	return p
}

// multipart reports whether the part consists of parts.
func (p *part) multipart() bool { return strings.HasPrefix(p.media, "multipart/") }

// isFile reports whether the part is a file, even if it is a text.
func (p *part) isFile() bool { return p.name != "" || p.disposition == "attachment" }

// contentType returns the media type of the part as a file, whose bytes stay as they are.
func (p *part) contentType() string {
	if charset := p.params["charset"]; strings.HasPrefix(p.media, "text/") && charset != "" {
		return p.media + "; charset=" + charset
	}
	return p.media
}
