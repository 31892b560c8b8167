package inbox_test

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
)

// atomFeed is a feed as a reader parses it.
type atomFeed struct {
	XMLName xml.Name  `xml:"http://www.w3.org/2005/Atom feed"`
	ID      string    `xml:"http://www.w3.org/2005/Atom id"`
	Title   string    `xml:"http://www.w3.org/2005/Atom title"`
	Updated time.Time `xml:"http://www.w3.org/2005/Atom updated"`
	Author  string    `xml:"http://www.w3.org/2005/Atom author>name"`
	Entries []struct {
		ID       string    `xml:"http://www.w3.org/2005/Atom id"`
		Title    string    `xml:"http://www.w3.org/2005/Atom title"`
		Updated  time.Time `xml:"http://www.w3.org/2005/Atom updated"`
		Category struct {
			Term string `xml:"term,attr"`
		} `xml:"http://www.w3.org/2005/Atom category"`
		Content struct {
			Type string `xml:"type,attr"`
			Text string `xml:",chardata"`
		} `xml:"http://www.w3.org/2005/Atom content"`
	} `xml:"http://www.w3.org/2005/Atom entry"`
}

// TestAtom checks that a reader gets a valid feed (RFC 4287) with the newest message first,
// whose IDs stay the same, and in which a text is data.
func TestAtom(t *testing.T) {
	t.Parallel()
	g := newGateway(t, kept("ops"), kept("other"))
	read := func(target string, header ...string) (feed atomFeed) {
		t.Helper()
		r := asReader(t, target)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		resp := g.Do(r)
		if got := resp.Header.Get("Content-Type"); resp.Status != http.StatusOK || got != "application/atom+xml; charset=utf-8" {
			t.Fatalf("%d %s: %s", resp.Status, got, resp.Body)
		}
		if err := xml.Unmarshal([]byte(resp.Body), &feed); err != nil {
			t.Fatalf("%v\n%s", err, resp.Body)
		}
		if feed.ID == "" || feed.Title == "" || feed.Author == "" || feed.Updated.IsZero() {
			t.Errorf("a feed without an id, a title, an author or a time: %+v", feed)
		}
		return feed
	}
	empty := read("/notify/ops/messages?format=atom")
	if len(empty.Entries) != 0 {
		t.Errorf("%+v", empty)
	}
	g.Post("/notify/ops", gatewaytest.TypeJSON, `{"body":"<script>a & b</script>\u0007","title":"Disk <full>","type":"failure"}`)
	id := g.Post("/notify/ops", gatewaytest.TypeJSON, `{"body":"all is well\nagain","type":"success"}`).JSON(t).ID
	feed := read("/notify/ops/messages", "Accept", "application/atom+xml, */*;q=0.1")
	if len(feed.Entries) != 2 || feed.ID != empty.ID {
		t.Fatalf("%+v", feed)
	}
	newest, oldest := feed.Entries[0], feed.Entries[1]
	if newest.ID != "urn:uuid:"+id || newest.Title != "all is well again" || newest.Content.Text != "all is well\nagain" ||
		newest.Content.Type != "text" || newest.Category.Term != "success" || !newest.Updated.Equal(feed.Updated) {
		t.Errorf("%+v", newest)
	}
	if oldest.Title != "Disk <full>" || oldest.Content.Text != "<script>a & b</script>\uFFFD" || oldest.ID == newest.ID {
		t.Errorf("%+v", oldest)
	}
	if again := read("/notify/ops/messages?format=atom&since=all"); fmt.Sprint(again) != fmt.Sprint(feed) {
		t.Errorf("the feed has changed:\n%+v\n%+v", again, feed)
	}
	if other := read("/notify/other/messages?format=atom"); other.ID == feed.ID {
		t.Error("two keys have one ID")
	}
	stranger := g.Get("/notify/ops/messages?format=atom")
	if stranger.Status != http.StatusUnauthorized || strings.Contains(stranger.Body, "Disk") {
		t.Errorf("%d %s", stranger.Status, stranger.Body)
	}
	if resp := g.Do(asReader(t, "/notify/ops/messages?format=atom&since=yesterday")); resp.Status != http.StatusBadRequest {
		t.Errorf("%d %s", resp.Status, resp.Body)
	}
}
