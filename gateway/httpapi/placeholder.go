package httpapi

import (
	"net/http"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// outcome is what became of a request, for the server's placeholders.
type outcome struct {
	id     string // of the message; "" for none
	status int    // HTTP status of the answer; 0 if it is unknown
	text   string // why the request failed; "" for success

	delivered, failed int // numbers of destinations
}

// setOutcome records the answer to the request of the route. Several answers to one request, such
// as that to a program in its own format, come from the same response.
func (at *Route) setOutcome(resp *api.Response) {
	at.outcome = outcome{id: resp.ID, status: resp.Status, text: resp.Error}
	for i := range resp.Results {
		switch resp.Results[i].Status {
		case notifier.Delivered:
			at.outcome.delivered++
		case notifier.Failed:
			at.outcome.failed++
		}
	}
}

// placeholderPrefix begins the names of the placeholders of a request.
const placeholderPrefix = "http.notify."

// placeholder returns the value of a placeholder of the request, and reports whether it is one. It
// is called by the server only for a placeholder that the configuration has.
func (at *Route) placeholder(name string) (value any, ok bool) {
	if name, ok = strings.CutPrefix(name, placeholderPrefix); !ok {
		return nil, false
	}
	o := &at.outcome
	value, ok = map[string]any{
		"id": o.id, "key": at.Key, "error": o.text, "status": o.status, "delivered": o.delivered, "failed": o.failed,
	}[name]
	if _, isNumber := value.(int); isNumber && o.status == 0 {
		value = "" // such as for a page
	}
	return value, ok
}

// ErrorText returns why the gateway has answered r with an error status, without secrets.
func ErrorText(placeholder func(name string) (string, bool), status int) string {
	if text, _ := placeholder(placeholderPrefix + "error"); text != "" {
		return text
	}
	return http.StatusText(status)
}
