package services

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// URLs as Teams and Power Automate show them work unchanged: no parameter is ignored,
// and the request goes to the same URL.
func TestWorkflowsAddress(t *testing.T) {
	for _, address := range []string{
		"https://prod-01.westeurope.logic.azure.com:443/workflows/643e69f83c8944/triggers/manual/paths/invoke" +
			"?api-version=2016-06-01&sp=%2Ftriggers%2Fmanual%2Frun&sv=1.0&sig=KODuebWbDGYFr0z0eu",
		"https://default0a1b2c.0d.environment.api.powerplatform.com:443/powerautomate/" +
			"automations/direct/workflows/643e69f83c8944/triggers/manual/paths/invoke" +
			"?api-version=1&sp=%2Ftriggers%2Fmanual%2Frun&sv=1.0&sig=KODuebWbDGYFr0z0eu",
		"https://default0a1b2c.0d.environment.api.powerplatform.com/powerautomate/" +
			"automations/direct/cu/05/workflows/643e69f83c8944/triggers/manual/paths/invoke/" +
			"?api-version=2022-03-01-preview&sp=%2Ftriggers%2Fother%2Frun&sv=1.1&sig=KODuebWbDGYFr0z0eu",
	} {
		d, err := notifier.Parse(address, nil)
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		if w := d.Warnings(); len(w) > 0 {
			t.Errorf("%s: %s", address, w)
		}
		want, _ := url.Parse(address)
		err = servicetest.API(func(q *http.Request, _ string) (int, string) {
			if q.URL.Hostname() != want.Hostname() || q.URL.Query().Encode() != want.Query().Encode() {
				t.Errorf("asked %s, want %s", q.URL, want)
			}
			return 202, ""
		}).Destination(t, address)(servicetest.Message(t, "plain"))
		if err != nil {
			t.Error(err)
		}
	}
}

func TestWorkflowsText(t *testing.T) {
	for text, want := range map[string]string{
		"one\ntwo\r\nthree":          "one\n\ntwo\n\nthree",
		"list:\n- a\n- b\nend":       "list:\n\n- a\n- b\n\nend",
		"1. a\n2) b\n\n10% - more":   "1. a\n2) b\n\n\n\n10% - more",
		"-1 degree\n-2 degrees":      "-1 degree\n\n-2 degrees",
		"a line without line breaks": "a line without line breaks",
	} {
		if got := workflowsText(&notifier.Message{Body: text, Source: notifier.Text}); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
		if got := workflowsText(&notifier.Message{Body: text, Source: notifier.Markdown}); got != text {
			t.Errorf("Markdown %q becomes %q", text, got)
		}
	}
}
