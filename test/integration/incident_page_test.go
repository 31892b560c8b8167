package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// TestAcknowledgeOnAPhone follows the link of a message on a phone, acknowledges there, and
// sees who has done so, with a script and without it.
func TestAcknowledgeOnAPhone(t *testing.T) {
	links := make(chan string, 10)
	phone := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var m map[string]any
		if json.Unmarshal(body, &m) == nil {
			_, link, _ := strings.Cut(string(body), "/notify/incidents/")
			links <- link[:min(26, len(link))]
		}
	}))
	defer phone.Close()
	port := freePort(t)
	address := fmt.Sprintf("http://localhost:%d", port)
	startGateway(t, port, fmt.Sprintf(`{
	notify {
		queue
	}
}
http://localhost:%d {
	notify {
		public_url https://alerts.example.com
		key ops {
			url json://%s/ 1:oncall
			escalate after 1h
		}
		egress {
			allow 127.0.0.1
		}
	}
}
`, port, strings.TrimPrefix(phone.URL, "http://")))
	withAndWithoutScript(t, func(ctx context.Context, script bool) {
		postForm(t, address+"/notify/ops?type=failure", http.StatusOK, url.Values{
			"title": {"The router does not answer"}, "body": {"confidential"},
			"incident": {fmt.Sprint("router ", script)},
		})
		link := address + "/notify/incidents/" + <-links
		run(t, ctx, emulation.SetDeviceMetricsOverride(320, 640, 1, true), open(link))
		shows(t, ctx, "h1", "The router does not answer")
		shows(t, ctx, ".state", "Open")
		if wide := eval[int64](t, ctx, "document.documentElement.scrollWidth"); wide > 320 {
			t.Errorf("the page is %d pixels wide", wide)
		}
		run(t, ctx, chromedp.SendKeys("#by", "Eve", chromedp.ByQuery), chromedp.Click("button[value=acknowledge]", chromedp.ByQuery))
		shows(t, ctx, ".done", "You take care of it")
		run(t, ctx, open(link))
		shows(t, ctx, ".state", "Acknowledged")
		shows(t, ctx, "main", "Eve")
		if got := text(t, ctx, "main"); strings.Contains(got, "confidential") {
			t.Errorf("the page has the text of the message: %s", got)
		}
	})
}
