package console_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/configstore"
	"github.com/caddy-notify/caddy-notify/gateway/console"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/internal/storagetest"
)

// TestKeyList checks that the list of keys shows the services and last results
// of each key, that it has pages and a search, and that unused keys are not
// kept in memory.
func TestKeyList(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	storage := storagetest.New(t.TempDir())
	o := openConfigs(gatewaytest.Key("fixed-here", s.NotifyURL("/a"), s.NotifyURL("/b")))
	o.Saved.MaxKeys, o.Storage = 1000, storage
	g := gatewaytest.New(t, o)
	page := func(query string) string {
		t.Helper()
		r := get(g, "/notify/console/keys"+query, "text/html")
		if r.Status != http.StatusOK {
			t.Fatalf("%s: %d %s", query, r.Status, r.Body)
		}
		return r.Body
	}
	if body := page(""); !strings.Contains(body, "2 × JSON 127.0.0.1:") || strings.Contains(body, "last delivered") {
		t.Errorf("with a key of the Caddyfile alone: %s", body)
	}
	for i := range 120 {
		if err := g.Saved.Store.Save(t.Context(), fmt.Sprintf("key%03d", i), configstore.FormatText,
			s.NotifyURL("/x")+"\nxml://127.0.0.1/t0ken-of-the-url\n", 1000); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.Saved.Store.Save(t.Context(), "broken", configstore.FormatText, "t0ken", 1000); err != nil {
		t.Fatal(err)
	}
	storage.Loads.Store(0)
	body := page("")
	for _, want := range []string{
		"Keys 1 to 50 of 122", ", XML 127.0.0.1</p>", ">key047</a>", `href="../../notify/console/keys?page=2"`,
		"has mistakes",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the first page lacks %q: %s", want, body)
		}
	}
	if strings.Contains(body, "t0ken") || strings.Contains(body, ">key048<") || strings.Contains(body, "Previous") {
		t.Errorf("the first page: %s", body)
	}
	n := storage.Loads.Load()
	if n > console.MaxListedKeys {
		t.Errorf("a page reads %d keys", n)
	}
	if page(""); storage.Loads.Load() != 2*n {
		t.Errorf("two pages read %d keys, and one reads %d: it keeps them", storage.Loads.Load(), n)
	}
	if body := page("?page=3"); !strings.Contains(body, "Keys 101 to 122 of 122") ||
		!strings.Contains(body, `href="../../notify/console/keys?page=2"`) || strings.Contains(body, "Next keys") {
		t.Errorf("the last page: %s", body)
	}
	if body := page("?search=KEY11&page=1"); !strings.Contains(body, "Keys 1 to 10 of 10 with “KEY11”") {
		t.Errorf("a search: %s", body)
	}
	if body := page("?search=absent"); !strings.Contains(body, "No key has “absent”") {
		t.Errorf("a search without a result: %s", body)
	}
	for _, query := range []string{"?page=0", "?page=4", "?page=x"} {
		if r := get(g, "/notify/console/keys"+query, "text/html"); r.Status != http.StatusNotFound {
			t.Errorf("%s: %d", query, r.Status)
		}
	}
	g.PostForm("/notify/fixed-here", "body=x")
	g.PostForm("/notify/key000", "body=x") // nothing listens for the second URL
	for search, want := range map[string]string{"fixed-here": "is-fine", "key000": "is-failing"} {
		if body := page("?search=" + search); strings.Count(body, `<span class="dot `) != 1 || !strings.Contains(body, `<span class="dot `+want) {
			t.Errorf("the key %s: %s", search, body)
		}
	}
}
