package services_test

import (
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// TestValuesOfTemplates checks that a value of a message is one recipient, topic or room of a
// service, and what the URL has around it stays.
func TestValuesOfTemplates(t *testing.T) {
	for url, values := range map[string]struct{ good, refused []string }{
		"mailto://u:p@corp.example?to=${V}": {
			[]string{"ann@corp.example", "Ann <ann@corp.example>"},
			[]string{"a@corp.example,victim@evil.example", "a@corp.example victim@evil.example", "a@corp.example;victim@evil.example"},
		},
		"mailto://u:p@corp.example?to=${V}@corp.example": {
			[]string{"ann", "ann.b+c"},
			[]string{
				"victim@evil.example,x", "victim@evil.example x", "<victim@evil.example> x",
				`"a" <victim@evil.example>, x`, "victim@evil.example>",
			},
		},
		"mailto://u:p@corp.example?cc=${V}@corp.example": {
			[]string{"ann"}, []string{"a,b", "..;x", "victim@evil.example,x", "victim@evil.example x"},
		},
		"mailto://u:p@corp.example?from=${V}<me@corp.example>": {[]string{"Ann", "Ann B., Ops"}, nil},
		"mailto://u:p@corp.example/${V}@corp.example":          {[]string{"ann"}, []string{"victim@evil.example,x", "victim@evil.example x"}},
		"ntfy://host/${V}": {
			[]string{"ops", "ops-1"},
			[]string{"x admin", "x,admin", "..", "x;admin", "", "victim@evil.example,x", "..;x", "%0d%0aX: y"},
		},
		"ntfy://host/a-${V}/b": {[]string{"ops"}, []string{" ..", "x,b", "x,#"}},
		"mmost://host/3ccdd113474722377935511fc85d3dd4/?to=${V}": {
			[]string{"ops", "+ops"}, []string{"..;x", "victim@evil.example,x", "?,x"},
		},
		"matrix://u:p@host/${V}":                                   {[]string{"ops"}, []string{"x admin", "x,#admin", "!admin:host"}},
		"slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7F/${V}": {[]string{"ops"}, []string{"x admin", "x,#admin"}},
		"jsons://host/tenant/${V}/hook":                            {[]string{"acme", "a b"}, []string{" ..", "..", "a/../..", "\uff0e\uff0e"}},
		"twilio://AC0123456789abcdef0123456789abcdef:0123456789abcdef0123456789abcdef@15550001111/${V}": {
			[]string{"15551234567", "+15551234567"}, []string{"15551234567,15557654321", "15551234567;15557654321"},
		},
	} {
		v := notifier.VariableURL{URL: url, Variables: []notifier.Variable{{Name: "V"}}}
		make := func(value string) (*notifier.Destination, error) {
			return v.Destination(map[string]string{"v": value},
				func(url string) (*notifier.Destination, error) { return notifier.Parse(url, nil) })
		}
		for _, value := range values.good {
			if d, err := make(value); err != nil {
				t.Errorf("%s with %q: %v", url, value, err)
			} else {
				d.Close()
			}
		}
		for _, value := range values.refused {
			if d, err := make(value); err == nil {
				t.Errorf("%s with %q: %s", url, value, d.URL())
			}
		}
	}
}
