// Package feed has the formats in which programs read an inbox: the gateway's own JSON, an Atom
// feed, and the requests and answers of ntfy's clients.
package feed

import (
	"cmp"
	"encoding/xml"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/gateway/inbox"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// MediaAtom is the media type of an Atom feed.
const MediaAtom = "application/atom+xml"

// WantsAtom reports whether the client of r asks for an Atom feed.
func WantsAtom(r *http.Request) bool {
	if format := r.URL.Query().Get("format"); format != "" {
		return format == "atom"
	}
	return slices.ContainsFunc(r.Header["Accept"], func(v string) bool { return strings.Contains(strings.ToLower(v), MediaAtom) })
}

// Atom is the inbox of a key as an Atom feed (RFC 4287).
type Atom struct {
	XMLName xml.Name    `xml:"http://www.w3.org/2005/Atom feed"`
	ID      string      `xml:"id"`
	Title   string      `xml:"title"`
	Updated string      `xml:"updated"`
	Author  string      `xml:"author>name"`
	Entries []atomEntry `xml:"entry"`
}

type atomEntry struct {
	ID       string       `xml:"id"`
	Title    string       `xml:"title"`
	Updated  string       `xml:"updated"`
	Category atomCategory `xml:"category"`
	Content  atomContent  `xml:"content"`
}

type atomCategory struct {
	Term string `xml:"term,attr"`
}

type atomContent struct {
	Type string `xml:"type,attr"`
	Text string `xml:",chardata"`
}

// maxAtomTitle is the maximum number of characters of an entry's title if its message has none.
const maxAtomTitle = 80

// NewAtom returns the feed of messages of a key, sorted by time. It has the name of the key. Its ID
// follows from the place of the key, and an entry's from its message, so that a reader recognizes
// them under another address.
func NewAtom(place, key string, messages []*inbox.Message, now time.Time) *Atom {
	feed := &Atom{
		ID: uuid.NewSHA1(uuid.NameSpaceURL, []byte("inbox "+place)).URN(), Title: "Messages of " + key, Author: key,
		Updated: now.UTC().Format(time.RFC3339),
	}
	for _, m := range slices.Backward(messages) {
		text := m.Text()
		title := cmp.Or(m.Title, markup.Truncate(markup.OneLine(text), maxAtomTitle), string(m.Type))
		feed.Entries = append(feed.Entries, atomEntry{
			ID: "urn:uuid:" + m.ID, Title: title, Updated: m.Time.UTC().Format(time.RFC3339),
			Category: atomCategory{string(m.Type)}, Content: atomContent{"text", text},
		})
	}
	if len(feed.Entries) > 0 {
		feed.Updated = feed.Entries[0].Updated
	}
	return feed
}

// Encode writes the feed as XML. Characters that XML does not allow are replaced.
func (a *Atom) Encode(w io.Writer) error {
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	return xml.NewEncoder(w).Encode(a)
}
