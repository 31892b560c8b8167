package mail

import (
	"slices"
	"testing"
)

func TestParseAddress(t *testing.T) {
	for _, c := range []struct{ in, name, address, text, header string }{
		{"jo@example.com", "", "jo@example.com", "jo@example.com", "jo@example.com"},
		{" <jo@example.com> ", "", "jo@example.com", "jo@example.com", "jo@example.com"},
		{
			"jo.o'neil+news@mail.example.com", "", "jo.o'neil+news@mail.example.com",
			"jo.o'neil+news@mail.example.com", "jo.o'neil+news@mail.example.com",
		},
		{"root@mailhost", "", "root@mailhost", "root@mailhost", "root@mailhost"},
		{"Jo<jo@example.com>", "Jo", "jo@example.com", "Jo <jo@example.com>", "Jo <jo@example.com>"},
		{"Jo:jo@example.com", "Jo", "jo@example.com", "Jo <jo@example.com>", "Jo <jo@example.com>"},
		{"Jo Doe jo@example.com", "Jo Doe", "jo@example.com", "Jo Doe <jo@example.com>", "Jo Doe <jo@example.com>"},
		{`"Doe, Jo" <jo@example.com>`, "Doe, Jo", "jo@example.com", `"Doe, Jo" <jo@example.com>`, `"Doe, Jo" <jo@example.com>`},
		{`"say \"hi\"" <jo@example.com>`, `say "hi"`, "jo@example.com", `"say \"hi\"" <jo@example.com>`, `"say \"hi\"" <jo@example.com>`},
		{"Jörg <jo@example.com>", "Jörg", "jo@example.com", "Jörg <jo@example.com>", "=?utf-8?b?SsO2cmc=?= <jo@example.com>"},
		{
			"\"Jo\r\nBcc: x@example.com\" <jo@example.com>", "Jo  Bcc: x@example.com", "jo@example.com",
			`"Jo  Bcc: x@example.com" <jo@example.com>`, `"Jo  Bcc: x@example.com" <jo@example.com>`,
		},
		{
			"Grupo OLOM, Inc <jo@example.com>", "Grupo OLOM, Inc", "jo@example.com",
			`"Grupo OLOM, Inc" <jo@example.com>`, `"Grupo OLOM, Inc" <jo@example.com>`,
		},
		{"O'Brien <jo@example.com>", "O'Brien", "jo@example.com", "O'Brien <jo@example.com>", "O'Brien <jo@example.com>"},
		{"Alert: prod <jo@example.com>", "Alert: prod", "jo@example.com", `"Alert: prod" <jo@example.com>`, `"Alert: prod" <jo@example.com>`},
		{
			"a@b.example, Ops @ Acme < jo@example.com >", "a@b.example, Ops @ Acme", "jo@example.com",
			`"a@b.example, Ops @ Acme" <jo@example.com>`, `"a@b.example, Ops @ Acme" <jo@example.com>`,
		},
		{
			`The "Ops" Team<jo@example.com>`, `The "Ops" Team`, "jo@example.com",
			`"The \"Ops\" Team" <jo@example.com>`, `"The \"Ops\" Team" <jo@example.com>`,
		},
		{"Disk < 10% <jo@example.com>", "Disk < 10%", "jo@example.com", `"Disk < 10%" <jo@example.com>`, `"Disk < 10%" <jo@example.com>`},
		{
			"Jo,\nBcc: x@example.com <jo@example.com>", "Jo, Bcc: x@example.com", "jo@example.com",
			`"Jo, Bcc: x@example.com" <jo@example.com>`, `"Jo, Bcc: x@example.com" <jo@example.com>`,
		},
	} {
		m, ok := ParseAddress(c.in)
		if !ok || m != (Address{c.name, c.address}) {
			t.Errorf("%q is read as %+v, %v", c.in, m, ok)
		}
		if m.String() != c.text || m.Header() != c.header {
			t.Errorf("%q is written as %q and %q", c.in, m.String(), m.Header())
		}
		if again, ok := ParseAddress(m.String()); !ok || again != m {
			t.Errorf("%q, written and read again, is %+v", c.in, again)
		}
	}
	for _, bad := range []string{
		"", "jo", "@example.com", "jo@", "i@v", "g@r@b", "jo@example..com", `"@example.com`,
		"jürgen@example.com", "jo@example.com, al@example.com", "Jo <jo@>", "Jo, <jo@example.com",
		"Jo, <a b@example.com>", "Jo, <jo@example.com> x", "Jo, <>",
	} {
		if m, ok := ParseAddress(bad); ok {
			t.Errorf("%q is read as %+v", bad, m)
		}
	}
}

// TestIsPlain checks that a plain address is one by the pattern, too.
func TestIsPlain(t *testing.T) {
	plain := 0
	var check func(s string)
	check = func(s string) {
		if IsPlain(s) {
			plain++
			if g := addressPattern.FindStringSubmatch(s); g == nil || g[4] != s {
				t.Errorf("%q is plain, and no address by the pattern", s)
			}
		}
		if len(s) < 8 {
			for _, c := range []string{"a", "-", ".", "@"} {
				check(s + c)
			}
		}
	}
	check("")
	if plain < 50 {
		t.Errorf("only %d plain addresses", plain)
	}
	for s, want := range map[string]bool{
		"Jo_Doe+news-2@mail.example.com": true, "jo@9.example2": true,
		"jo@Example.com": false, "jo@xn--bcher-kva.example": false, "jö@example.com": false, "jo@bücher.example": false,
		"jo@mailhost": false, "jo@example.c": false, "jo doe@example.com": false,
		"jo@example.com ": false, "jo@exa_mple.com": false, "o'neil@example.com": false,
	} {
		if IsPlain(s) != want {
			t.Errorf("%q: plain is %v", s, !want)
		}
	}
}

func TestSplitList(t *testing.T) {
	for in, want := range map[string][]string{
		"a@example.com": {"a@example.com"},
		"a@example.com,b@example.com;c@example.com":         {"a@example.com", "b@example.com", "c@example.com"},
		"a@example.com b@example.com":                       {"a@example.com", "b@example.com"},
		"Ops @ Acme <a@example.com>,b@example.com":          {"Ops @ Acme <a@example.com>", "b@example.com"},
		"Jo@Home of Ops <a@example.com>; b@example.com":     {"Jo@Home of Ops <a@example.com>", " b@example.com"},
		"x@ y <a@example.com> ":                             {"x@ y <a@example.com> "},
		"b@example.com Ops @ Acme <a@example.com>":          {"b@example.com", "Ops @ Acme <a@example.com>"},
		"Jo@Home of Ops <a@example.com> Al <b@example.com>": {"Jo@Home", "of Ops <a@example.com>", "Al <b@example.com>"},
		"a@example.com\u2003b@example.com":                  {"a@example.com", "b@example.com"},
		`"Jo b@example.com" <a@example.com>`:                {`"Jo b@example.com" <a@example.com>`},
		"Acme, Inc <a@example.com>":                         {"Acme", " Inc <a@example.com>"},
		`"Doe, Jo" <a@example.com>,Al <b@example.com>`:      {`"Doe, Jo" <a@example.com>`, "Al <b@example.com>"},
		`"a \" , b" <a@example.com>,b@example.com`:          {`"a \" , b" <a@example.com>`, "b@example.com"},
	} {
		if got := SplitList(in); !slices.Equal(got, want) {
			t.Errorf("%q is split into %q", in, got)
		}
	}
}

func TestNewRecipients(t *testing.T) {
	list := func(addresses ...string) []Address { return ParseList(addresses) }
	rcpt := NewRecipients(list("a@example.com"),
		list("a@example.com", "b@example.com", "c@example.com", "c@example.com"),
		list("b@example.com", "a@example.com"))
	if got := Addresses(rcpt.All()); !slices.Equal(got, []string{"a@example.com", "c@example.com", "b@example.com"}) {
		t.Errorf("got %v", got)
	}
}
