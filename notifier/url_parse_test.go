package notifier

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func parseProbe(t *testing.T, text string) (*Destination, *probe) {
	t.Helper()
	d, err := Parse(text, nil)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return d, d.service.(*probe)
}

func TestParse(t *testing.T) {
	tests := []struct {
		url       string
		canonical string // "" for the same
		redacted  string
		check     func(*probe) bool
	}{
		{"probe://host.example/tok", "", "probe://host.example/xxxxx", func(p *probe) bool {
			return p.Host == "host.example" && p.token == "tok" && !p.Secure
		}},
		{"probes://h/tok", "", "probes://h/xxxxx", func(p *probe) bool { return p.Secure }},
		{"PRB://h/tok", "prb://h/tok", "prb://h/xxxxx", nil},
		{
			"probe://us%40er:p%3Aw%2F%40d@h:8080/a/b/a/tok",
			"probe://us%40er:p%3Aw%2F%40d@h:8080/a/b/a/tok", "probe://us%40er:xxxxx@h:8080/a/b/a/xxxxx",
			func(p *probe) bool {
				return p.User == "us@er" && p.Password == "p:w/@d" && p.Port == 8080 && slices.Equal(p.path, []string{"a", "b", "a"})
			},
		},
		{"probe://user:p@ss@h/tok", "probe://user:p%40ss@h/tok", "probe://user:xxxxx@h/xxxxx", func(p *probe) bool {
			return p.Password == "p@ss"
		}},
		{"probe://user:@h/tok", "", "probe://user:@h/xxxxx", func(p *probe) bool { _, pw := p.Login(); return pw == "" }},
		{"probe://user@h/tok", "", "probe://user@h/xxxxx", func(p *probe) bool { _, pw := p.Login(); return pw == "None" }},
		{"probe://[2001:db8::1]:99/tok", "", "probe://[2001:db8::1]:99/xxxxx", func(p *probe) bool {
			return p.URL() == "http://[2001:db8::1]:99"
		}},
		{"probe://h?token=tok", "probe://h/tok", "probe://h/xxxxx", nil},
		{"probe://h/a/b?key=tok", "probe://h/a/b/tok", "probe://h/a/b/xxxxx", func(p *probe) bool { return len(p.path) == 2 }},
		{"probe://_/tok?host=h", "probe://h/tok", "probe://h/xxxxx", nil},
		{"probe://h//a///tok//", "probe://h/a/tok", "probe://h/a/xxxxx", nil},
		{"probe://h/tok?Level=HI&quiet=n", "probe://h/tok?level=high", "probe://h/xxxxx?level=high", func(p *probe) bool { return p.level == 5 }},
		{"probe://h/tok?level=5", "probe://h/tok?level=high", "probe://h/xxxxx?level=high", nil},
		{"probe://h/tok?level=urgent", "probe://h/tok?level=high", "probe://h/xxxxx?level=high", nil},
		{"probe://h/tok?level=nonsense", "probe://h/tok", "probe://h/xxxxx", func(p *probe) bool { return p.level == 0 }},
		{
			"probe://h/tok?count=10&ratio=.25;quiet=Yes", "probe://h/tok?ratio=0.25&count=10&quiet=yes",
			"probe://h/xxxxx?ratio=0.25&count=10&quiet=yes", nil,
		},
		{
			"probe://h/tok?+X-Key=a+b%26c&format=html&retry=3",
			"probe://h/tok?+X-Key=a%2Bb%26c&format=html&retry=3",
			"probe://h/xxxxx?+X-Key=xxxxx&format=html&retry=3",
			func(p *probe) bool {
				return p.header["X-Key"] == "a+b&c"
			},
		},
		{
			"many://tok/one/@two/%23three/one?to=four,five",
			"many://tok/one/%23three/four/five/@two?host=example.com",
			"many://xxxxx/one/%23three/four/five/@two?host=example.com",
			func(p *probe) bool {
				return slices.Equal(p.targets, []string{"one", "#three", "four", "five"}) && slices.Equal(p.users, []string{"two"})
			},
		},
		{"many://tok/#a", "many://tok/%23a?host=example.com", "many://xxxxx/%23a?host=example.com", nil},
		{
			"many://tok/##a/b#c/d?to=%23e,#f", "many://tok/%23%23a/b/%23e/%23f?host=example.com",
			"many://xxxxx/%23%23a/b/%23e/%23f?host=example.com", nil,
		},
		{"many://tok#c/d?to=e", "many://tok/e?host=example.com", "many://xxxxx/e?host=example.com", nil},
		{"probe://u#1:p#2@h/tok#c", "probe://u%231:p%232@h/tok", "probe://u%231:xxxxx@h/xxxxx", func(p *probe) bool {
			return p.User == "u#1" && p.Password == "p#2"
		}},
		{
			"https://me:pass@h.example:99/in/tok/x/y?quiet=yes",
			"probes://me:pass@h.example:99/tok?quiet=yes&targets=x%2Cy",
			"probes://me:xxxxx@h.example:99/xxxxx?quiet=yes&targets=x%2Cy",
			func(p *probe) bool {
				return p.Secure
			},
		},
		{
			"probe://h/tok?phones=(555) 123-4567,+1.555.765.4321,no",
			"probe://h/tok?phones=5551234567%2C%2B15557654321",
			"probe://h/xxxxx?phones=5551234567%2C%2B15557654321", nil,
		},
		{"probe://h/100%?token=tok", "probe://h/100%25/tok", "probe://h/100%25/xxxxx", nil},
	}
	for _, tt := range tests {
		d, p := parseProbe(t, tt.url)
		want := tt.canonical
		if want == "" {
			want = tt.url
		}
		if got := d.URL(); got != want {
			t.Errorf("%s: canonical\n got %s\nwant %s", tt.url, got, want)
		}
		if got := d.String(); got != tt.redacted {
			t.Errorf("%s: redacted\n got %s\nwant %s", tt.url, got, tt.redacted)
		}
		if tt.check != nil && !tt.check(p) {
			t.Errorf("%s: wrong values: %+v", tt.url, p.Server)
		}
		again, _ := parseProbe(t, d.URL())
		if again.URL() != d.URL() {
			t.Errorf("%s: prints as %s and then as %s", tt.url, d.URL(), again.URL())
		}
	}
}

func TestParseErrors(t *testing.T) {
	tests := []struct{ url, want string }{
		{"", "does not begin with a service and ://; write for example json://example.com"},
		{"tok-secret", "does not begin with a service and ://; write for example json://example.com"},
		{"nosuch://tok-secret", "begins with nosuch://, which is not a scheme of any service"},
		{"https://example.com/tok-secret", "json://"},
		{"probe://", "Probe: host (name or address of the server) is missing; write probe[s]|prb://"},
		{"probe://:@/", "host (name or address of the server) is missing"},
		{"probe://h", "Probe: token (the token) is missing; write probe[s]|prb://"},
		{"probe://h/tok!secret", "Probe: token (the token) has the wrong form"},
		{"probe://h!x/tok-secret", "has the wrong form; write for example example.com"},
		{"probe://h:x/tok-secret", "port (port of the server) must be a whole number from 1 to 65535"},
		{"probe://h:70000/tok-secret", "port (port of the server) must be a whole number from 1 to 65535"},
		{"probe://h/tok-secret?count=11", "count (a number) must be a whole number from 1 to 10"},
		{"probe://h/tok-secret?count=x", "count (a number) must be a whole number from 1 to 10"},
		{"probe://h/tok-secret?ratio=NaN", "ratio (a share) must be a number from 0 to 1"},
		{"probe://h/tok-secret?verify=perhaps", "verify (check the certificate of a TLS server) must be yes or no"},
		{"probe://h/tok-secret?verify=none", "verify (check the certificate of a TLS server) must be yes or no"},
		{"probe://h/tok-secret?redirect=perhaps", "redirect (follow HTTP redirects) must be yes or no"},
		{"probe://h/tok-secret?mode=nonsense", "mode (what to do) must be one of post, panic"},
		{"probe://h/tok-secret?quiet=yes&level=high", "drop quiet or level"},
		{"probe://h/tok-secret?tz=Nowhere/City", "is not the name of a time zone; write for example Europe/Berlin"},
		{
			"many://tok-secret/a?to=" + strings.Repeat("b,", maxItems),
			"targets (who gets it) has more than 500 items; move the others to another URL",
		},
		{"probe://h/tok-secret?x=y" + entries(maxEntries+1), "header (HTTP header) has more than 100 entries; leave some out"},
	}
	for _, tt := range tests {
		_, err := Parse(tt.url, nil)
		if _, ok := errors.AsType[*URLError](err); !ok {
			t.Errorf("%s: got %v, want a URLError", tt.url, err)
			continue
		}
		if !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s:\n got %s\nwant %s", tt.url, err, tt.want)
		}
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error reveals the token: %s", tt.url, err)
		}
	}
}

// entries returns a query with n entries of the probe's map.
func entries(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "&%%2BX-%d=secret", i)
	}
	return b.String()
}

// TestParseMany parses a list and a map at their maximum lengths.
func TestParseMany(t *testing.T) {
	var items strings.Builder
	for i := range maxItems {
		fmt.Fprintf(&items, "t%d, ,", i) // white space and empty items do not count
	}
	if _, p := parseProbe(t, "many://tok?to="+items.String()); len(p.targets) != maxItems {
		t.Errorf("%d of %d items", len(p.targets), maxItems)
	}
	if _, p := parseProbe(t, "probe://h/tok?%2BX-1=a"+entries(maxEntries)); len(p.header) != maxEntries {
		t.Errorf("%d of %d entries", len(p.header), maxEntries)
	}
	if _, p := parseProbe(t, "many://tok?to=a"+strings.Repeat("&to=b", 400)); len(p.targets) != 2 {
		t.Errorf("%d targets, of which two differ", len(p.targets))
	}
}

func TestWarnings(t *testing.T) {
	for url, want := range map[string]string{
		"probe://h/tok":                         "",
		"probe://h/tok?nosuch=1":                "Probe: the parameter nosuch is unknown and has no effect",
		"probe://h/tok?level=low&no_such=1":     "no_such is unknown and has no effect",
		"probe://h/tok?secrettoken":             "Probe: parameter 1 of the query is unknown and has no effect",
		"probe://h/secrettoken?secrettoken=1":   "Probe: parameter 1 of the query is unknown and has no effect",
		"probe://h/tok?secrettoken=secrettoken": "Probe: parameter 1 of the query is unknown and has no effect",
		"probe://h/tok?title=atoken&atoken=1":   "Probe: parameter 2 of the query is unknown and has no effect",
		"probe://h/tok?level=low&s3cret=1":      "Probe: parameter 2 of the query is unknown and has no effect",
		"probe://h/tok?level=nonsense":          "Probe: level must be one of low, normal, high; the default is used",
		"probe://h/tok?phones=555123,no,555321": "Probe: item 2 of phones is not a telephone number and is left out",
		"many://user@tok/a":                     "Probe: the user in the URL has no meaning and no effect",
		"many://tok/a#b/c":                      "Probe: the URL ends at the # within a word; write %23 for a # that belongs to the word",
		"many://tok/#a/#b,#c%20#d":              "",
		"probe://h/tok?format=x":                "format must be one of text, markdown, html; the default is used",
		"probe://h/tok?overflow=x":              "overflow must be one of upstream, truncate, split; the default is used",
		"probe://h/auth?auth=1":                 "Probe: the parameter auth is unknown and has no effect",
	} {
		d, _ := parseProbe(t, url)
		if got := strings.Join(d.Warnings(), "; "); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: warnings %q, want %q", url, got, want)
		}
	}
}

// TestInvalidValues checks that a URL with an invalid value is accepted. A number
// is clipped, and anything else becomes the default. The canonical URL has the
// value that is used.
func TestInvalidValues(t *testing.T) {
	for _, tt := range []struct{ query, canonical, warning string }{
		{"retry=60", "?retry=10", "retry must be a whole number from 0 to 10; 10 is used"},
		{"retry=99999999999999999999", "?retry=10", "retry must be a whole number from 0 to 10; 10 is used"},
		{"retry=-1", "", "retry must be a whole number from 0 to 10; the default is used"},
		{"retry=2.5", "", "retry must be a whole number from 0 to 10; the default is used"},
		{"retry=often", "", "retry must be a whole number from 0 to 10; the default is used"},
		{"wait=100", "?wait=20", "wait must be a number from 0 to 20; 20 is used"},
		{"wait=-1", "", "wait must be a number from 0 to 20; the default is used"}, // 0.5, and not 0
		{"wait=NaN", "", "wait must be a number from 0 to 20; the default is used"},
		{"rto=abc", "", "rto must be a number from 0 to 86400; the default is used"},
		{"rto=Inf", "?rto=86400", "rto must be a number from 0 to 86400; 86400 is used"},
		{"cto=0", "", "cto must be a number from 0.001 to 86400; the default is used"},
		{"cto=1e-9", "", "cto must be a number from 0.001 to 86400; the default is used"},
		{"emojis=maybe", "", "emojis must be yes or no; the default is used"},
		{"emojis=yeah", "?emojis=yes", "emojis must be yes or no; yes is used"}, // by the first two letters, as Apprise reads it
		{"store=none", "?store=no", "store must be yes or no; no is used"},
		{"store=2", "", "store must be yes or no; the default is used"},
		{"store=é", "", "store must be yes or no; the default is used"},
		{"optional=perhaps", "", "optional must be yes or no; the default is used"},
		{"quiet=perhaps", "", "quiet must be yes or no; the default is used"}, // a parameter of the service
		{"mode=p", "", ""}, // post, the first that begins so
		{"mode=o", "?mode=once", ""},
		{"level=l", "?level=low", ""},
		{"level=u", "?level=high", ""}, // by its synonym
		{"level=loud", "?level=low", "level must be one of low, normal, high; low is used"},
		{"level=error", "", "level must be one of low, normal, high; the default is used"},
		{"level=7", "", "level must be one of low, normal, high; the default is used"},
		{"format=NotifyFormat.MARKDOWN&overflow=OverflowMode.SPLIT", "?format=markdown&overflow=split", ""}, // as Apprise prints it for DingTalk
	} {
		d, _ := parseProbe(t, "probe://h/tok?"+tt.query)
		if got := strings.TrimPrefix(d.URL(), "probe://h/tok"); got != tt.canonical {
			t.Errorf("%s: the canonical URL ends in %q, want %q", tt.query, got, tt.canonical)
		}
		if tt.warning != "" {
			tt.warning = "Probe: " + tt.warning
		}
		mistake := tt.warning // the URL is not used, and nothing instead
		if i := strings.LastIndex(mistake, "; "); strings.HasSuffix(mistake, " is used") {
			mistake = mistake[:i]
		}
		if got := strings.Join(d.Warnings(), "; "); got != tt.warning || d.Mistake() != mistake {
			t.Errorf("%s: warnings %q and mistake %q, want %q and %q", tt.query, got, d.Mistake(), tt.warning, mistake)
		}
	}
}

// TestIgnoredParameters checks that a parameter that Apprise writes into its URLs
// and that has no effect here is not a mistake, unless its value asks for
// something.
func TestIgnoredParameters(t *testing.T) {
	for _, tt := range []struct {
		query, warnings string
		mistake         string
	}{
		{"cache=yes", "the parameter cache has no effect: nothing is cached", ""},
		{"Cache=NO", "the parameter Cache has no effect: nothing is cached", ""},
		{"cache=hour", "the parameter cache has no effect: nothing is cached", "cache"},
		{"-x=1", "the parameter -x has no effect: there are no fields", ""},
		{"-s3cret=1", "the parameter -* has no effect: there are no fields", ""},
		{
			"cache=yes&nosuch=1",
			"the parameter nosuch is unknown and has no effect; Login: the parameter cache has no effect: nothing is cached",
			"nosuch",
		},
	} {
		d, err := Parse("login://token/x?"+tt.query, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := strings.Join(d.Warnings(), "; "), "Login: "+tt.warnings; got != want {
			t.Errorf("%s: warnings %q, want %q", tt.query, got, want)
		}
		if got := d.Mistake(); (got != "") != (tt.mistake != "") || !strings.Contains(got, tt.mistake) {
			t.Errorf("%s: mistake %q, want one about %q", tt.query, got, tt.mistake)
		}
		if strings.Contains(d.URL(), "?") {
			t.Errorf("%s: prints as %s", tt.query, d.URL())
		}
	}
}

// TestLogin checks that the query sets the user and the password under the usual
// names even if the service's parameters have other names.
func TestLogin(t *testing.T) {
	for url, want := range map[string]string{
		"login://sid:auth@h/x":                           "login://sid:auth@h/x",
		"login://h/x?user=sid&pass=auth":                 "login://sid:auth@h/x",
		"login://h/x?USER=sid&Password=auth":             "login://sid:auth@h/x",
		"login://old:older@h/x?user=sid&password=auth":   "login://sid:auth@h/x",
		"login://sid@h/x?pass=a%2Fb":                     "login://sid:a%2Fb@h/x",
		"https://login.example.com/h/x?user=a&pass=b":    "login://a:b@h/x",
		"probe://h/tok?user=alice&pass=s3cret":           "probe://alice:s3cret@h/tok", // its own parameters
		"many://tok/a?user=alice&pass=s3cret&password=x": "many://tok/a?user=alice&password=x&host=example.com",
	} {
		d, err := Parse(url, nil)
		if err != nil {
			t.Errorf("%s: %v", url, err)
		} else if got := d.URL(); got != want || len(d.Warnings()) > 0 {
			t.Errorf("%s: prints as %s with warnings %q, want %s", url, got, d.Warnings(), want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"probe://user:pass@h:80/a/tok?level=high&+X=1", "many://tok/@a/#b?to=c", "https://h/in/tok",
		"probe://[::1]:1/%zz/%41", "probe://_?host=h&token=t", "json://", "://", "probe://h/tok?a=b;c&=d", "https://:/in/tok",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := Parse(s, nil)
		if err != nil {
			return
		}
		again, err := Parse(d.URL(), nil)
		if err != nil {
			t.Fatalf("%q prints as %q, which is refused: %v", s, d.URL(), err)
		}
		if again.URL() != d.URL() {
			t.Fatalf("%q prints as %q and then as %q", s, d.URL(), again.URL())
		}
	})
}

// TestTimeZone checks that names of time zones are read as Apprise reads them.
func TestTimeZone(t *testing.T) {
	for name, want := range map[string]string{
		"Europe/Berlin": "Europe/Berlin", "europe/berlin": "Europe/Berlin",
		"berlin": "Europe/Berlin", "america/port_of_spain": "America/Port_of_Spain",
		"utc": "UTC", "Z": "UTC", "gmt0": "GMT0", "us/eastern": "US/Eastern",
		"eastern": "US/Eastern", "argentina/buenos_aires": "America/Argentina/Buenos_Aires",
		"port-au-prince": "America/Port-au-Prince", "": "", "local": "-", "pst": "-", "../etc": "-", "/": "-", "x//y": "-",
	} {
		got, err := timeZone(name)
		if err != nil {
			got = "-"
		}
		if got != want {
			t.Errorf("%q is read as %q, want %q", name, got, want)
		}
	}
}
