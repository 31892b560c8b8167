package console

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/caddy-notify/caddy-notify/docs"
	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// senders returns the programs that a text names and that send to a key, with the addresses of the key
// for them.
func (h *builder) senders(r *http.Request, key, text string) (out []view.Sender) {
	if len(text) > maxSenderName {
		return nil
	}
	for _, p := range docs.FindPrograms(text) {
		s := view.Sender{Name: p.Name, Where: pageParts(p.Where), Page: docs.Address + "program-list.md"}
		for _, part := range p.Enter {
			if part.Code && strings.Contains(part.Text, exampleHost) {
				s.Lines = append(s.Lines, view.CopiedLine{Name: "The address for " + p.Name, Text: h.addressFor(r, key, part.Text)})
			}
		}
		if len(s.Lines) == 0 || len(p.Enter) > 1 { // there is more to enter than an address
			s.Enter = h.enterParts(r, key, p.Enter)
		}
		out = append(out, s)
	}
	return out
}

// maxSenderName bounds the texts that can be names of programs.
const maxSenderName = 100

// exampleHost is the host of addresses in the documentation.
const exampleHost = "alerts.example.com"

// examplePath is the path of a key there.
const examplePath = "/notify/ops/"

// enterParts returns what to enter in a program, with the addresses of a key.
func (h *builder) enterParts(r *http.Request, key string, parts []docs.Part) []view.Part {
	out := pageParts(parts)
	for i := range out {
		if out[i].Code {
			out[i].Text = h.addressFor(r, key, out[i].Text)
		}
	}
	return out
}

// pageParts returns the parts of a text of the documentation.
func pageParts(parts []docs.Part) (out []view.Part) {
	for _, p := range parts {
		x := view.Part{Text: p.Text, Code: p.Code}
		if p.Page != "" {
			x.Address = docs.Address + p.Page
		}
		out = append(out, x)
	}
	return out
}

// addressFor returns an address of the documentation as that of a key, with placeholders for the login
// of the site and the token of the key.
func (h *builder) addressFor(r *http.Request, key, text string) string {
	scheme, host := httpapi.SiteAddress(r)
	prefix := host + httpapi.StrippedPrefix(r)
	k, _ := h.Lookup(key).Key(r.Context())
	rest, ok := strings.CutPrefix(text, docs.ExampleAddress)
	switch {
	case ok:
		address := keyURL(r, &site.Key{Name: key}) + rest
		if k != nil && h.NeedsLogin(r, k) {
			address = strings.Replace(address, "://", "://USER:PASSWORD@", 1)
		}
		if k != nil && len(k.Tokens) > 0 && !strings.Contains(rest, "TOKEN") {
			if strings.Contains(address, "?") {
				return address + "&token=$TOKEN"
			}
			return address + "?token=$TOKEN"
		}
		return address
	case text == "ops":
		return key
	case strings.Contains(text, examplePath):
		return strings.Replace(text, examplePath, httpapi.StrippedPrefix(r)+site.PathOf(site.RouteNotifyKey, key)+"/", 1)
	case scheme == "http":
		text = strings.NewReplacer("https://", "http://", "apprises://", "apprise://").Replace(text)
	}
	address := strings.NewReplacer(exampleHost+"/ops", prefix+"/"+key, "ops@"+exampleHost, key+"@"+hostOnly(host), exampleHost, prefix)
	return address.Replace(text)
}

// hostOnly returns a host without its port.
func hostOnly(host string) string { return (&url.URL{Host: host}).Hostname() }

// localHost returns the host of a text that is the address of a server in a private network, or "".
func localHost(text string) string {
	found, err := notifier.Recognize(text)
	if err != nil {
		return ""
	}
	for _, x := range found {
		if hosts := x.Values.Texts["host"]; len(hosts) > 0 && notifier.IsLocalHost(hosts[0]) {
			return hosts[0]
		}
	}
	return ""
}

// blocks reports whether URLs of saved keys may not lead to a host of a private network. The addresses
// of a name are not known; any address of such a network stands for them.
func (h *builder) blocks(host string) bool {
	a, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if err != nil {
		a = netip.AddrFrom4([4]byte{192, 168, 0, 1})
	}
	return h.Resolved.Limits.Egress.CheckAddr(a) != nil
}
