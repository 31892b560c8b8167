package notifier

import (
	"cmp"
	"errors"
	"net/mail"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/caddy-notify/caddy-notify/internal/loginurl"
	"github.com/caddy-notify/caddy-notify/internal/percent"
	"github.com/caddy-notify/caddy-notify/notifier/internal/urlsyntax"
)

// Recognized is a service that a text may belong to, with the form of its URL that
// the text fills in.
type Recognized struct {
	Service ServiceInfo
	Form    *URLForm
	Values  URLValues

	// What describes the text, as in "the token of a bot".
	What string

	// Note is advice for the person who has the text, such as what is wrong with it. It is a
	// sentence without its full stop, or "". It contains nothing of the text.
	Note string

	// Sure reports whether no other service has texts of this form.
	Sure bool
}

// maxRecognized is the maximum length of a text to recognise. URLs with a whole
// file in them are this long.
const maxRecognized = 64 << 10

// Recognize returns the services that a text may belong to: a notification URL, or something that a
// service or a person has handed out, such as a token, the address of a webhook or of a server, an
// e-mail address or a telephone number. The likeliest are first. If there is none, the error says
// what to do, without the text.
func Recognize(text string) ([]Recognized, error) {
	if len(text) > maxRecognized {
		return nil, &URLError{Problem: "the text is too long for an address or a token", Fix: "paste only the address or the token"}
	}
	text = withScheme(unwrapped(text))
	var err error
	if strings.Contains(text, "://") {
		var d *Destination
		note := ""
		if d, err = Parse(text, nil); err != nil {
			if encoded, ok := loginurl.Encode(text); ok {
				if repaired, again := Parse(encoded, nil); again == nil {
					d, err, note = repaired, nil, "its password has characters that a URL has encoded, such as %2F for /, and is encoded here"
				}
			}
		}
		if err == nil {
			defer d.Close()
			form, values := d.Form()
			what := "a notification URL"
			if d.scheme.Name != strings.ToLower(text[:strings.Index(text, "://")]) {
				what = "an address that the service gives out"
			}
			return []Recognized{{Service: d.entry.info(), Form: form, Values: values, What: what, Note: note, Sure: true}}, nil
		}
	}
	found := recognizeHints(text)
	if scheme := schemeOfHost(text); len(found) == 0 && scheme != "" {
		if more, err := Recognize(scheme + "://" + text); err == nil {
			return more, nil
		}
	}
	if !slices.ContainsFunc(found, func(r Recognized) bool { return r.Sure }) {
		found = append(found, recognizeKinds(text, found)...)
		found = slices.DeleteFunc(found, func(r Recognized) bool { return r.refused() })
	}
	host := ""
	if u, err := url.Parse(text); err == nil {
		host = letters(u.Hostname()) // often named after the program that runs there
	}
	slices.SortStableFunc(found, func(a, b Recognized) int {
		return cmp.Or(byBool(b.Sure, a.Sure), byBool(b.namedIn(host), a.namedIn(host)), byBool(a.regional(), b.regional()))
	})
	if len(found) > 0 {
		return found, nil
	}
	if e, ok := errors.AsType[*URLError](err); ok && e.Service != "" {
		// The beginning of the URL says which service it is for.
		service := FindService(e.Service)
		return []Recognized{{Service: *service, Form: URLForms(service.Schemes[0])[0], What: "a URL with a mistake", Note: e.Error()}}, nil
	}
	if err != nil {
		return nil, WithSuggestion(text, err)
	}
	return nil, &URLError{
		Problem: "no service gives out a text of this form",
		Fix:     "search for the name of the service, and paste the text into the field of its form",
	}
}

// refused reports whether the service refuses one of the values, such as a telephone
// number of another country.
func (r *Recognized) refused() bool {
	_, problems := r.Form.Build(r.Values)
	return slices.ContainsFunc(problems, func(p *URLError) bool { return r.Values.Texts[p.Param] != nil })
}

func byBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

func (r *Recognized) regional() bool { return slices.Contains(r.Service.Groups, GroupRegional) }

// unwrapped returns a text without its surroundings in the place it was copied from: white space,
// quotes, the directive of a Caddyfile, the scheme of an e-mail address or a telephone number.
func unwrapped(text string) string {
	text = strings.TrimSpace(text)
	text = strings.TrimSpace(strings.TrimPrefix(text, "url "))
	for _, pair := range []string{`""`, "''", "<>", "``"} {
		if len(text) > 1 && text[0] == pair[0] && text[len(text)-1] == pair[1] {
			text = text[1 : len(text)-1]
		}
	}
	if rest, ok := cutPrefixFold(text, "tel:"); ok {
		return rest
	}
	if rest, ok := cutPrefixFold(text, "mailto:"); ok && !strings.HasPrefix(rest, "//") {
		return rest
	}
	return text
}

func cutPrefixFold(text, prefix string) (string, bool) {
	if len(text) < len(prefix) || !strings.EqualFold(text[:len(prefix)], prefix) {
		return text, false
	}
	return text[len(prefix):], true
}

// withScheme returns a text that is an IP address, perhaps with a port and a path, as the address of a
// web server. Its digits could be a telephone number.
func withScheme(text string) string {
	authority, path, more := strings.Cut(text, "/")
	if a, err := netip.ParseAddr(authority); err == nil {
		if a.Is6() {
			authority = "[" + authority + "]"
		}
	} else if _, err := netip.ParseAddrPort(authority); err != nil {
		return text
	}
	if more {
		authority += "/" + path
	}
	return "http://" + authority
}

// schemeOfHost returns the likely scheme of a web address that was written without
// it, or "" if the text is no such address.
func schemeOfHost(text string) string {
	authority, _, _ := strings.Cut(text, "/")
	host, port, _ := strings.Cut(authority, ":")
	_, err := strconv.ParseUint(port, 10, 16)
	dot := strings.LastIndexByte(host, '.')
	switch {
	case !hostPattern.MatchString(host):
		return ""
	case IsLocalHost(host) && (dot > 0 || err == nil):
		return "http"
	case dot <= 0 || !strings.ContainsFunc(host[dot:], unicode.IsLetter):
		return ""
	}
	return "https"
}

// localDomains are the last labels of the names of hosts that public name servers do not know.
var localDomains = []string{"local", "lan", "home", "internal", "localdomain", "arpa", "box", "intranet", "corp"}

// IsLocalHost reports whether a host is an address of a private network or of this machine, or a name
// that only such a network knows.
func IsLocalHost(host string) bool {
	host = strings.Trim(host, "[]")
	if a, err := netip.ParseAddr(host); err == nil {
		a = a.WithZone("").Unmap()
		return a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() || sharedRange.Contains(a)
	}
	last := host[strings.LastIndexByte(host, '.')+1:]
	return last == host || slices.Contains(localDomains, strings.ToLower(last))
}

// sharedRange has addresses of networks behind a carrier, and of Tailscale.
var sharedRange = netip.MustParsePrefix("100.64.0.0/10")

// recognizeHints returns the services with a hint that a text matches.
func recognizeHints(text string) (found []Recognized) {
	for _, e := range registry.entries {
		for _, h := range e.schema.hints {
			if texts := h.match(text); texts != nil {
				r := e.recognized(texts)
				r.What, r.Note, r.Sure = h.Is, h.Note, !h.Guess
				found = append(found, r)
				break
			}
		}
	}
	return found
}

// recognized returns the form for values in a text: the best one that has a place for all of them.
func (e *entry) recognized(texts map[string]string) Recognized {
	v := URLValues{Texts: map[string][]string{}}
	secure := true
	for name, text := range texts {
		if name == hintAddress {
			secure = setAddress(v.Texts, text)
			continue
		}
		p := e.schema.byName[name]
		v.Texts[name] = []string{text}
		if p.kind == KindList && p.list.repeats {
			v.Texts[name] = splitSegments(text)
		}
	}
	best := e.schema.forms()[0]
	for _, t := range e.schema.forms() {
		fits := true
		for name := range v.Texts {
			fits = fits && (t.Has(name) || !e.schema.placed(name))
		}
		if fits {
			best = t
			break
		}
	}
	if texts[hintAddress] != "" {
		for _, s := range best.Schemes {
			if s.Secure == secure {
				v.Scheme = s.Name
				break
			}
		}
	}
	return Recognized{Service: e.info(), Form: e.form(best), Values: v}
}

// placed reports whether one of the templates has a place for a parameter.
func (d *description) placed(name string) bool {
	return slices.ContainsFunc(d.templates, func(t *urlsyntax.Template) bool { return t.Has(name) })
}

// splitSegments returns the segments of a path.
func splitSegments(path string) (out []string) {
	for segment := range strings.SplitSeq(path, "/") {
		if segment != "" {
			out = append(out, percent.DecodeText(segment))
		}
	}
	return out
}

// setAddress adds the parts of a web address to the values of a form, and reports
// whether it has TLS.
func setAddress(texts map[string][]string, address string) (secure bool) {
	scheme, authority, _ := strings.Cut(address, "://")
	urlsyntax.AddAuthority(authority, texts)
	return strings.EqualFold(scheme, "https")
}

// recognizeKinds returns the services that take a text by its kind and not by its form: an e-mail
// address, a telephone number, or the address of a server. It leaves out the known ones.
func recognizeKinds(text string, known []Recognized) (found []Recognized) {
	isKnown := func(e *entry) bool {
		return slices.ContainsFunc(known, func(r Recognized) bool { return r.Service.Name == e.schema.Name })
	}
	add := func(e *entry, what string, texts map[string]string) {
		if !isKnown(e) {
			r := e.recognized(texts)
			r.What = what
			found = append(found, r)
		}
	}
	entries := slices.Clone(registry.entries)
	group := GroupMail
	if isPhone(text) {
		group = GroupSMS
	}
	slices.SortFunc(entries, func(a, b *entry) int {
		return cmp.Or(
			byBool(slices.Contains(b.schema.words, string(group)), slices.Contains(a.schema.words, string(group))), // known for it
			byBool(b.schema.mainGroup() == group, a.schema.mainGroup() == group),
			strings.Compare(strings.ToLower(a.schema.Name), strings.ToLower(b.schema.Name)),
		)
	})
	switch {
	case isEmail(text):
		for _, e := range entries {
			if p := e.schema.byName["targets"]; p != nil && e.schema.mainGroup() == GroupMail {
				add(e, "an e-mail address to send to", map[string]string{"targets": text})
			}
		}
	case isPhone(text):
		for _, e := range entries {
			if p := e.schema.byName["targets"]; p != nil && p.phones {
				add(e, "a telephone number to send to", map[string]string{"targets": text})
			}
		}
	default:
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Fragment != "" {
			return nil
		}
		for _, e := range entries {
			if r, ok := e.ofServer(text, u); ok && !isKnown(e) {
				found = append(found, r)
			}
		}
	}
	return found
}

// mainGroup returns the first group of the service.
func (d *description) mainGroup() Group { return d.groups[0] }

// namedIn reports whether the letters of a host have the name of the service.
func (r *Recognized) namedIn(host string) bool {
	return slices.ContainsFunc(append([]string{letters(r.Service.Name)}, r.Service.Schemes...), func(name string) bool {
		return len(name) >= 4 && strings.Contains(host, name)
	})
}

// ofServer returns the form for a server with this address. It reports false if the
// service does not run on servers of its users, or has no place for the path or the
// query.
func (e *entry) ofServer(text string, u *url.URL) (r Recognized, ok bool) {
	s := e.schema
	if s.server == nil || s.noWeb || !s.placed("host") {
		return r, false
	}
	authority, _, _ := strings.Cut(text[len(u.Scheme)+len("://"):], "/")
	authority, _, _ = strings.Cut(authority, "?")
	texts := map[string]string{hintAddress: u.Scheme + "://" + authority}
	if path := strings.Trim(u.EscapedPath(), "/"); path != "" {
		if p := s.byName["path"]; p == nil || p.kind != KindList || !p.list.repeats {
			return r, false
		}
		texts["path"] = path
	}
	r = e.recognized(texts)
	r.What = "the address of a server"
	if IsLocalHost(u.Hostname()) {
		r.What = "the address of a server in your network"
	}
	r.Values.Slash = u.Path != "/" && strings.HasSuffix(u.Path, "/")
	for key, values := range u.Query() {
		// The parameters of a request are written with a minus before them.
		p := s.mapOf("-" + key)
		if p == nil || p.dict.prefix != "-" {
			return r, false
		}
		if r.Values.Maps == nil {
			r.Values.Maps = map[string]map[string]string{p.name: {}}
		}
		r.Values.Maps[p.name][key] = values[0]
	}
	return r, true
}

// isEmail reports whether a text is an e-mail address without a name.
func isEmail(text string) bool {
	a, err := mail.ParseAddress(text)
	return err == nil && a.Address == text && strings.Contains(text[strings.LastIndexByte(text, '@'):], ".")
}

// isPhone reports whether a text is a telephone number with its country code or
// area code.
func isPhone(text string) bool {
	n, err := Phone(text)
	return err == nil && len(strings.TrimPrefix(n, "+")) >= 7
}
