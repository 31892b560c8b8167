package httpapi_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/saved"
	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// TestCharsetsOfEveryDoor sends a text in several charsets to every address that takes messages.
func TestCharsetsOfEveryDoor(t *testing.T) {
	const text = "größer als 5 €"
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := gatewaytest.New(t, gatewaytest.Options{
		Global: site.Options{Keys: []site.KeyOptions{gatewaytest.Key("ops", s.NotifyURL("/ops"))}},
		Site:   site.Options{Egress: gatewaytest.Loopback()},
	})
	little := unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)
	encode := func(e interface{ String(string) (string, error) }, s string) string {
		out, err := e.String(s)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	charsets := []struct {
		name, declared string
		guessed        bool
		encode         func(string) string
	}{
		{"a mark", "", false, func(s string) string { return "\xEF\xBB\xBF" + s }},
		{"UTF-16 with a mark", "", false, func(s string) string { return "\xFF\xFE" + encode(little.NewEncoder(), s) }},
		{"UTF-16, declared", "utf-16le", false, func(s string) string { return encode(little.NewEncoder(), s) }},
		{"Windows-1252", "", true, func(s string) string { return encode(charmap.Windows1252.NewEncoder(), s) }},
		{"ISO 8859-15, declared", "iso-8859-15", false, func(s string) string { return encode(charmap.ISO8859_15.NewEncoder(), s) }},
		{"Windows-1252, in an unknown charset", "x-none", true, func(s string) string { return encode(charmap.Windows1252.NewEncoder(), s) }},
		{"UTF-8, in an unknown charset", "x-none", false, func(s string) string { return s }},
		{"KOI8-R, declared, of a text in ASCII", "koi8-r", false, func(s string) string { return s }},
	}
	for _, door := range []struct{ name, path, media, body string }{
		{"JSON", "", "application/json", `{"body":"TEXT"}`},
		{"a form", "", "application/x-www-form-urlencoded", "title=x&body=TEXT"},
		{"a text as a form", "", "application/x-www-form-urlencoded", "TEXT"},
		{"a text", "", "text/plain", "TEXT"},
		{"Markdown", "", "text/markdown", "TEXT"},
		{"HTML", "", "text/html", "<p>TEXT</p>"},
		{
			"XML", "", "application/xml",
			"<Notification><Version>1.1</Version><Subject>x</Subject><MessageType>info</MessageType><Message>TEXT</Message></Notification>",
		},
		{"slack", "/slack", "application/json", `{"text":"TEXT"}`},
		{"slack, a form", "/slack", "application/x-www-form-urlencoded", `payload={"text":"TEXT"}`},
		{"slack, the Web API", "/slack/api/chat.postMessage", "application/json", `{"channel":"x","text":"TEXT"}`},
		{"discord", "/discord", "application/json", `{"content":"TEXT"}`},
		{"gotify", "/gotify/message", "application/json", `{"message":"TEXT"}`},
		{"gotify, a form", "/gotify/message", "application/x-www-form-urlencoded", "title=x&message=TEXT"},
		{"ntfy", "/ntfy/topic", "text/plain", "TEXT"},
		{"ntfy, JSON", "/ntfy", "application/json", `{"topic":"t","message":"TEXT"}`},
		{
			"pagerduty", "/pagerduty/v2/enqueue", "application/json",
			`{"event_action":"trigger","payload":{"summary":"TEXT","severity":"info","source":"x"}}`,
		},
		{"opsgenie", "/opsgenie/v2/alerts", "application/json", `{"message":"TEXT"}`},
		{"gatus", "/gatus", "text/plain", "endpoint: x\nstate: TRIGGERED\nerrors: TEXT\n"},
	} {
		for _, c := range charsets {
			want := text
			if c.declared == "koi8-r" {
				want = "plain"
			}
			media := door.media
			if c.declared != "" {
				media += "; charset=" + c.declared
			}
			r := g.Do(gatewaytest.NewRequest(http.MethodPost, "/notify/ops"+door.path, c.encode(strings.ReplaceAll(door.body, "TEXT", want)),
				"Content-Type", media))
			if r.Status/100 != 2 {
				t.Errorf("%s in %s: %d %s", door.name, c.name, r.Status, r.Body)
				continue
			}
			if got := s.One(t); !strings.Contains(got.Title+got.Message, want) {
				t.Errorf("%s in %s: %q, %q", door.name, c.name, got.Title, got.Message)
			}
			if door.path == "" && strings.Contains(r.Body, "not UTF-8") != c.guessed {
				t.Errorf("%s in %s: the answer is %s", door.name, c.name, r.Body)
			}
		}
	}

	latin1 := charsets[3].encode(text)
	for name, r := range map[string]*http.Request{
		"the query": gatewaytest.NewRequest(http.MethodPost, "/notify/ops?title="+url.QueryEscape(latin1), "x", "Content-Type",
			"text/plain"),
		"a header": gatewaytest.NewRequest(http.MethodPost, "/notify/ops", "x", "Content-Type", "text/plain", "Title", latin1),
		"an encoded header": gatewaytest.NewRequest(http.MethodPost, "/notify/ops", "x", "Content-Type", "text/plain", "Title",
			"=?iso-8859-15?Q?gr=F6=DFer als 5 =A4?="),
		"an encoded header in an unknown charset": gatewaytest.NewRequest(http.MethodPost, "/notify/ops", "x", "Content-Type", "text/plain",
			"Title", "=?x-none?Q?gr=F6=DFer als 5 =80?="),
		"a form that names an unknown charset": gatewaytest.NewRequest(http.MethodPost, "/notify/ops",
			"_charset_=x-none&body=gr%F6%DFer+als+5+%80", "Content-Type",
			"application/x-www-form-urlencoded"),
		"a part in an unknown charset": gatewaytest.NewRequest(http.MethodPost, "/notify/ops",
			"--b\r\nContent-Disposition: form-data; name=body\r\n"+
				"Content-Type: text/plain; charset=x-none\r\n\r\n"+latin1+"\r\n--b--\r\n", "Content-Type", "multipart/form-data; boundary=b"),
		"XML that names an unknown charset": gatewaytest.NewRequest(http.MethodPost, "/notify/ops",
			"<?xml version=\"1.0\" encoding=\"x-none\"?><Notification><Version>1.1</Version>"+
				"<Subject>x</Subject><MessageType>info</MessageType><Message>"+latin1+"</Message></Notification>", "Content-Type", "text/xml"),
		"HTML that names an unknown charset": gatewaytest.NewRequest(http.MethodPost, "/notify/ops", "<meta charset=x-none><p>"+latin1+"</p>",
			"Content-Type", "text/html"),
		"a header of ntfy": gatewaytest.NewRequest(http.MethodPost, "/notify/ops/ntfy/t", "x", "Title", latin1),
		"ntfy's query": gatewaytest.NewRequest(http.MethodGet,
			"/notify/ops/ntfy/t/publish?message="+url.QueryEscape(latin1), ""),
		"gotify's query": gatewaytest.NewRequest(http.MethodPost, "/notify/ops/gotify/message?title="+url.QueryEscape(latin1),
			`{"message":"x"}`, "Content-Type", "application/json"),
		"a form with escapes": gatewaytest.NewRequest(http.MethodPost, "/notify/ops", "body="+url.QueryEscape(latin1), "Content-Type",
			"application/x-www-form-urlencoded"),
		"a form with its charset": gatewaytest.NewRequest(http.MethodPost, "/notify/ops", "_charset_=iso-8859-15&body=gr%F6%DFer+als+5+%A4",
			"Content-Type",
			"application/x-www-form-urlencoded"),
		"a part": gatewaytest.NewRequest(http.MethodPost, "/notify/ops", "--b\r\nContent-Disposition: form-data; name=body\r\n"+
			"Content-Type: text/plain; charset=iso-8859-15\r\n\r\ngr\xF6\xDFer als 5 \xA4\r\n--b--\r\n", "Content-Type",
			"multipart/form-data; boundary=b"),
		"a part of a form with its charset": gatewaytest.NewRequest(http.MethodPost, "/notify/ops",
			"--b\r\nContent-Disposition: form-data; name=_charset_\r\n\r\n"+
				"iso-8859-15\r\n--b\r\nContent-Disposition: form-data; name=body\r\n\r\ngr\xF6\xDFer als 5 \xA4\r\n--b--\r\n", "Content-Type",
			"multipart/form-data; boundary=b"),
		"a part without a charset": gatewaytest.NewRequest(http.MethodPost, "/notify/ops",
			"--b\r\nContent-Disposition: form-data; name=body\r\n\r\n"+latin1+
				"\r\n--b--\r\n", "Content-Type", "multipart/form-data; boundary=b"),
		"the name of a file": gatewaytest.NewRequest(http.MethodPost, "/notify/ops",
			"--b\r\nContent-Disposition: form-data; name=body\r\n\r\n"+text+
				"\r\n--b\r\nContent-Disposition: form-data; name=attach; filename*=iso-8859-1''T%FCr\r\nContent-Type: image/png\r\n\r\nx\r\n--b--\r\n",
			"Content-Type", "multipart/form-data; boundary=b"),
		"XML that names its charset": gatewaytest.NewRequest(http.MethodPost, "/notify/ops",
			"<?xml version=\"1.0\" encoding=\"iso-8859-15\"?><Notification><Version>1.1</Version>"+
				"<Subject>x</Subject><MessageType>info</MessageType><Message>gr\xF6\xDFer als 5 \xA4</Message></Notification>", "Content-Type",
			"text/xml"),
		"HTML that names its charset": gatewaytest.NewRequest(http.MethodPost, "/notify/ops",
			"<meta charset=iso-8859-15><p>gr\xF6\xDFer als 5 \xA4</p>", "Content-Type", "text/html"),
	} {
		answer := g.Do(r)
		if answer.Status/100 != 2 {
			t.Errorf("%s: %d %s", name, answer.Status, answer.Body)
			continue
		}
		if strings.Contains(answer.Body, "x-none") != strings.Contains(name, "unknown") {
			t.Errorf("%s: the answer is %s", name, answer.Body)
		}
		got := s.One(t)
		if !strings.Contains(got.Title+got.Message, text) {
			t.Errorf("%s: %q, %q", name, got.Title, got.Message)
		}
		if name == "the name of a file" && got.Files() != "Tür.png image/png x" {
			t.Errorf("%s: %s", name, got.Files())
		}
	}
}

// TestCharsetOfSavedKey saves a configuration in several charsets.
func TestCharsetOfSavedKey(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := newSavedKeys(t, nil, gatewaytest.Everybody(), saved.Options{})
	urls := "# größer\n" + s.NotifyURL("/a") + "\n"
	for name, body := range map[string]string{
		"UTF-8 with a mark": "\xEF\xBB\xBF" + urls,
		"Latin-1":           strings.ReplaceAll(urls, "größer", "gr\xF6\xDFer"),
	} {
		if r := g.Post("/add/Home", "text/plain", body); r.Status != http.StatusOK {
			t.Errorf("%s: %d %s", name, r.Status, r.Body)
		}
		if r := g.Post("/cfg/Home", "", ""); !strings.Contains(r.Body, "# größer\\n") {
			t.Errorf("%s: saved %q", name, r.Body)
		}
	}
}
