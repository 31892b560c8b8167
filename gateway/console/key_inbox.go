package console

import (
	"net/http"
	"strings"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/console/sending"
	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// setInbox sets where the messages of a key are read, for clients that may read them.
func (h *keyPages) setInbox(r *http.Request, p *view.KeyPage, key *httpapi.Lookup, k *site.Key) {
	if k.Inbox == 0 {
		p.Lacks = h.lacksInbox(k)
		return
	}
	if _, err := h.api.Inboxes.Reader(r, key); err != nil {
		return
	}
	p.Inbox = &view.KeyInbox{
		Address: inboxAddress(r, k.Name), Keep: view.Length(k.Inbox), Readers: len(k.Readers),
	}
	if !k.Saved { // a saved key has no reader, so programs cannot read it
		p.Inbox.Lines = readingLines(r, k)
	}
}

// inboxAddress returns the address of the inbox of a key, relative to a request.
func inboxAddress(r *http.Request, key string) string {
	return api.RootOf(r.URL.Path) + strings.TrimPrefix(site.PathOf(httpapi.RouteInbox, key), "/")
}

// readingLines returns lines for programs that read the inbox of a key, with the address at which
// the client of r reaches the site.
func readingLines(r *http.Request, k *site.Key) []view.CopiedLine {
	notify := sending.KeyURL(r, k)
	const header = ` -H "Authorization: Bearer $READER" `
	return []view.CopiedLine{
		{Name: "curl, what comes in", Text: "curl -N" + header + notify + "/stream", Note: "A line of JSON for each message, as it comes in."},
		{Name: "curl, the messages of a day", Text: "curl" + header + `"` + notify + `/messages?since=24h"`},
		{
			Name: "ntfy's app", Text: notify + "/ntfy",
			Note: "In the app: add a subscription, “Use another server”. This is the service URL. The topic is any, such as phone; so is the " +
				"user name. The password is the reader.",
		},
		{Name: "ntfy's command", Text: `ntfy subscribe --token "$READER" ` + notify + "/ntfy/phone"},
	}
}
