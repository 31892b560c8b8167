package sending

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/caddy-notify/caddy-notify/docs"
	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// Key is the key that programs send to.
type Key struct {
	Name   string
	Tokens bool // it has tokens
	Login  bool // the site asks for a login
}

// Programs returns the programs that a text names, with the addresses of the key for them.
func (k Key) Programs(r *http.Request, text string) (out []view.Sender) {
	if len(text) > maxSenderName {
		return nil
	}
	for _, p := range docs.FindPrograms(text) {
		s := view.Sender{Name: p.Name, Where: pageParts(p.Where), Page: docs.Address + "program-list.md"}
		for _, part := range p.Enter {
			if part.Code && strings.Contains(part.Text, exampleHost) {
				s.Lines = append(s.Lines, k.linesFor(r, &p, part.Text)...)
			}
		}
		if len(s.Lines) == 0 || len(p.Enter) > 1 { // there is more to enter than an address
			s.Enter = k.enterParts(r, p.Enter)
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

// linesFor returns an address of the documentation as that of the key, with the place of its token.
func (k Key) linesFor(r *http.Request, p *docs.Program, text string) []view.CopiedLine {
	address := view.CopiedLine{Name: "The address for " + p.Name, Text: k.addressFor(r, text)}
	if !k.Tokens || !strings.HasPrefix(text, docs.ExampleAddress) || strings.Contains(text, "TOKEN") {
		return []view.CopiedLine{address}
	}
	switch {
	case p.Token == docs.TokenInHeader:
		name, value := Header(k.Login)
		header := view.CopiedLine{
			Name: "The header for " + p.Name, Text: name + ": " + value, Note: "Where it takes headers, a token or an authorization.",
		}
		if k.Login {
			header.Log = keepOut
		}
		return []view.CopiedLine{address, header}
	case k.Login:
		address.Text = withQuery(address.Text)
		address.Note, address.Log = p.Name+" sends no header but the login, so the token is in the address.", keepOut
	case p.Token == docs.TokenAsPassword:
		return []view.CopiedLine{address, {Name: "The password for " + p.Name, Text: "$TOKEN", Note: "With any user name."}}
	default:
		plain := withQuery(address.Text)
		address.Text = strings.Replace(address.Text, "://", "://any:$TOKEN@", 1)
		address.Note, address.Log = "If "+p.Name+" sends no password of an address, and so gets 401, enter "+plain+" instead.", keepOut
	}
	return []view.CopiedLine{address}
}

// withQuery returns an address with a placeholder for the token in its query, where access logs have it.
func withQuery(address string) string {
	if strings.Contains(address, "?") {
		return address + "&token=$TOKEN"
	}
	return address + "?token=$TOKEN"
}

// enterParts returns what to enter in a program, with the addresses of a key.
func (k Key) enterParts(r *http.Request, parts []docs.Part) []view.Part {
	out := pageParts(parts)
	for i := range out {
		if out[i].Code {
			out[i].Text = k.addressFor(r, out[i].Text)
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
// of the site.
func (k Key) addressFor(r *http.Request, text string) string {
	scheme, host := httpapi.SiteAddress(r)
	prefix := host + httpapi.StrippedPrefix(r)
	rest, ok := strings.CutPrefix(text, docs.ExampleAddress)
	switch {
	case ok:
		address := KeyURL(r, &site.Key{Name: k.Name}) + rest
		if k.Login {
			address = strings.Replace(address, "://", "://USER:PASSWORD@", 1)
		}
		return address
	case text == "ops":
		return k.Name
	case strings.Contains(text, examplePath):
		return strings.Replace(text, examplePath, httpapi.StrippedPrefix(r)+site.PathOf(site.RouteNotifyKey, k.Name)+"/", 1)
	case scheme == "http":
		text = strings.NewReplacer("https://", "http://", "apprises://", "apprise://").Replace(text)
	}
	address := strings.NewReplacer(exampleHost+"/ops", prefix+"/"+k.Name, "ops@"+exampleHost, k.Name+"@"+hostOnly(host), exampleHost, prefix)
	return address.Replace(text)
}

// hostOnly returns a host without its port.
func hostOnly(host string) string { return (&url.URL{Host: host}).Hostname() }
