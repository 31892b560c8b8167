package notifier

import (
	"maps"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier/internal/urlsyntax"
)

// print returns the URL in its canonical form. With mask, secrets are masked.
func (d *Destination) print(mask bool) string {
	return d.printWith(func(p *Param, v string) string {
		if mask {
			return p.masked(v)
		}
		return v
	})
}

// printWith is like print. shown returns how a value of a parameter is shown.
func (d *Destination) printWith(shown func(p *Param, v string) string) string {
	s, t, server, slash := d.schema, d.template, d.server(), d.slash()
	values := func(name string) []string {
		p := s.byName[name]
		texts := d.texts(p)
		for i, v := range texts {
			texts[i] = shown(p, v)
		}
		return texts
	}
	out := t.Print(d.scheme.Name, values, server != nil && server.hasPassword)
	if slash != nil && *slash && !strings.HasSuffix(out, "/") {
		out += "/"
	}
	var query []string
	for _, p := range s.params {
		if t.Has(p.name) {
			continue
		}
		if p.kind == KindMap {
			m := *d.entries(p)
			for _, key := range slices.Sorted(maps.Keys(m)) {
				value := m[key]
				if p.hides(key) {
					value = shown(p, value)
				}
				query = append(query, p.dict.prefix+urlsyntax.Escape(key)+"="+urlsyntax.Escape(value))
			}
			continue
		}
		texts := d.texts(p)
		if len(texts) > 0 && !(p.kind != KindList && texts[0] == s.defaultOf(p)) {
			query = append(query, p.name+"="+urlsyntax.Escape(strings.Join(values(p.name), ",")))
		}
	}
	if len(query) > 0 {
		out += "?" + strings.Join(query, "&")
	}
	return out
}
