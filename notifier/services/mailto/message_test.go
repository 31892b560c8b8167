package mailto

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// parsedMail is a mail as a mail program reads it.
type parsedMail struct {
	header mail.Header
	kind   string // the structure, as in mixed(plain, pdf)
	parts  []parsedPart
}

type parsedPart struct {
	kind        string
	params      map[string]string
	disposition string
	filename    string
	id          string
	body        string
}

func parseMail(t *testing.T, data []byte) parsedMail {
	t.Helper()
	for line := range bytes.Lines(data) {
		if !bytes.HasSuffix(line, []byte("\r\n")) || len(line) > 1000 || bytes.ContainsFunc(line[:len(line)-2], func(r rune) bool {
			return r == '\r' || r == 0
		}) {
			t.Errorf("an invalid line: %.80q…", line)
		}
	}
	m, err := mail.ReadMessage(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	out := parsedMail{header: m.Header}
	out.kind = out.walk(t, m.Header, m.Body)
	return out
}

func (p *parsedMail) walk(t *testing.T, header map[string][]string, body io.Reader) string {
	t.Helper()
	h := mail.Header(header)
	kind, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil {
		t.Fatalf("%v: %v", err, header)
	}
	if sub, ok := strings.CutPrefix(kind, "multipart/"); ok {
		var kinds []string
		for r := multipart.NewReader(body, params["boundary"]); ; {
			part, err := r.NextRawPart()
			if err == io.EOF {
				return sub + "(" + strings.Join(kinds, ", ") + ")"
			}
			if err != nil {
				t.Fatal(err)
			}
			kinds = append(kinds, p.walk(t, part.Header, part))
		}
	}
	switch h.Get("Content-Transfer-Encoding") {
	case "quoted-printable":
		body = quotedprintable.NewReader(body)
	case "base64":
		body = base64.NewDecoder(base64.StdEncoding, body)
	}
	content, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	part := parsedPart{kind: kind, params: params, body: string(content), id: h.Get("Content-Id")}
	if d := h.Get("Content-Disposition"); d != "" {
		var params map[string]string
		if part.disposition, params, err = mime.ParseMediaType(d); err != nil {
			t.Fatal(err)
		}
		part.filename = params["filename"]
	}
	p.parts = append(p.parts, part)
	return kind[strings.IndexByte(kind, '/')+1:]
}

// text returns the body of a text part with LF line breaks, without the last
// one.
func (p parsedPart) text() string {
	return strings.TrimSuffix(strings.ReplaceAll(p.body, "\r\n", "\n"), "\n")
}

func decoded(t *testing.T, s string) string {
	t.Helper()
	out, err := new(mime.WordDecoder).DecodeHeader(s)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func addresses(t *testing.T, h mail.Header, name string) (out []mail.Address) {
	t.Helper()
	if h.Get(name) == "" {
		return nil
	}
	list, err := h.AddressList(name)
	if err != nil {
		t.Fatalf("%s: %v: %q", name, err, h.Get(name))
	}
	for _, a := range list {
		out = append(out, *a)
	}
	return out
}

func TestHeader(t *testing.T) {
	s, sender := startMail(t, &mailServer{}), servicetest.NewSender(t)
	u := s.url("mailto", "user", "/"+`J%C3%BCrgen%20M%C3%BCller%3Cyou@example.org%3E`+
		"?cc=Al:al@example.org,%22Doe,%20Jo%22%3Cjo@example.org%3E&bcc=secret@example.org,you@example.org&reply=help@example.org"+
		"&name=Die%20W%C3%A4chter&%2BX-Origin=gate%20way&%2BX-Place=Z%C3%BCrich%20%E2%98%83&%2BX-Long="+
		strings.Repeat("x", 1200)+"&tz=Asia/Tokyo")
	m := servicetest.Message(t, "plain")
	m.Title = "Platte fast voll: 91 % – " + strings.Repeat("☃", 100)
	got := mustSend(t, sender, s, u, m)
	if got.from != "user@example.com" ||
		!slices.Equal(got.to, []string{"you@example.org", "al@example.org", "jo@example.org", "secret@example.org"}) {
		t.Errorf("from %s to %q", got.from, got.to)
	}
	p := parseMail(t, got.data)
	for name, want := range map[string]string{
		"From": "[{Die Wächter user@example.com}]", "To": "[{Jürgen Müller you@example.org}]",
		"Cc": "[{Al al@example.org} {Doe, Jo jo@example.org}]", "Bcc": "[]", "Reply-To": "[{ help@example.org}]",
	} {
		if got := fmt.Sprint(addresses(t, p.header, name)); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
	for name, want := range map[string]string{
		"Subject": m.Title, "X-Origin": "gate way", "X-Place": "Zürich ☃",
		"X-Long": strings.Repeat("x", 1200), "Date": "Sun, 01 Mar 2026 21:30:15 +0900",
		"Mime-Version": "1.0", "X-Application": "Caddy", "Auto-Submitted": "",
	} {
		if got := decoded(t, p.header.Get(name)); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	if header, _, _ := strings.Cut(string(got.data), "\r\n\r\n"); strings.ContainsFunc(header, func(r rune) bool {
		return r > unicode.MaxASCII
	}) {
		t.Errorf("the header is not ASCII:\n%s", header)
	}
	if id := p.header.Get("Message-Id"); !strings.HasPrefix(id, "<") || !strings.HasSuffix(id, "@example.com>") {
		t.Errorf("Message-ID: %q", id)
	}
	if bytes.Contains(got.data, []byte("secret@example.org")) {
		t.Error("the mail names the recipient of a blind copy")
	}

	// One mail to each target.
	u = s.url("mailto", "user", "/a@example.org?to=b@example.org&cc=c@example.org,a@example.org&from=me@example.net")
	if err := servicetest.Send(t, sender, u, servicetest.Message(t, "plain"), mailTime).Err; err != nil {
		t.Fatal(err)
	}
	mails := s.got()
	if len(mails) != 2 || fmt.Sprint(mails[0].to, mails[1].to) != "[a@example.org c@example.org] [b@example.org c@example.org a@example.org]" {
		t.Fatalf("got %v", mails)
	}
	if from := fmt.Sprint(addresses(t, parseMail(t, mails[0].data).header, "From")); from != "[{ me@example.net}]" {
		t.Errorf("from %s", from)
	}
	// The default target is the sender, and the default name is the gateway's.
	got = mustSend(t, sender, s, s.url("mailto", "user", ""), servicetest.Message(t, "plain"))
	if from := fmt.Sprint(addresses(t, parseMail(t, got.data).header, "From"),
		got.to); from != "[{Caddy user@example.com}] [user@example.com]" {
		t.Errorf("from %s", from)
	}
}

// Header fields of the URL replace those that the mail would have, so that it
// has each of them once (RFC 5322, section 3.6).
func TestOwnHeader(t *testing.T) {
	s, sender := startMail(t, &mailServer{}), servicetest.NewSender(t)
	u := s.url("mailto", "user", "/you@example.org?reply=other@example.org"+
		"&%2BReply-To=J%C3%BCrgen%20%3Chelp@example.org%3E,desk@example.org&%2Bsubject=Z%C3%BCrich&%2BTo=team@example.net"+
		"&%2BX-Application=gate&%2BAuto-Submitted=auto-generated&%2BCC=&%2BX-Evil=a%0D%0ABcc:%20x@example.org")
	got := mustSend(t, sender, s, u, servicetest.Message(t, "plain"))
	if !slices.Equal(got.to, []string{"you@example.org"}) {
		t.Errorf("the mail goes to %q", got.to)
	}
	p := parseMail(t, got.data)
	if reply := fmt.Sprint(addresses(t, p.header, "Reply-To")); reply != "[{Jürgen help@example.org} { desk@example.org}]" {
		t.Errorf("Reply-To: %s", reply)
	}
	for name, want := range map[string]string{
		"Subject": "Zürich", "To": "team@example.net", "X-Application": "gate", "Auto-Submitted": "auto-generated",
		"Cc": "", "Bcc": "", "X-Evil": "a  Bcc: x@example.org", "From": "Caddy <user@example.com>",
	} {
		if got := decoded(t, p.header.Get(name)); got != want {
			t.Errorf("%s: %q instead of %q", name, got, want)
		}
	}
	for name, values := range p.header {
		if len(values) != 1 {
			t.Errorf("the mail has %s %d times", name, len(values))
		}
	}
}

// TestThread checks that the mails about an incident are a thread, and others not.
func TestThread(t *testing.T) {
	s, sender := startMail(t, &mailServer{}), servicetest.NewSender(t)
	thread := "<" + servicetest.Message(t, "open").Incident.ID + "@example.com>"
	for name, want := range map[string]string{
		"open": thread, "resolved": thread, "plain": "",
	} {
		h := parseMail(t, mustSend(t, sender, s, s.url("mailto", "user", "/you@example.org"), servicetest.Message(t, name)).data).header
		if h.Get("References") != want || h.Get("In-Reply-To") != want || h.Get("Message-Id") == want {
			t.Errorf("%s: References %q, In-Reply-To %q, Message-ID %q", name, h.Get("References"), h.Get("In-Reply-To"), h.Get("Message-Id"))
		}
	}
}

func TestContent(t *testing.T) {
	s, sender := startMail(t, &mailServer{}), servicetest.NewSender(t)
	odd := "line one <b>&\"quoted\"</b>\n.a dot\n..\n\ntrailing \t\nFrom here: é ü 漢字 ☃ 😀 = % # ?\n" + strings.Repeat("long ", 400)
	photo := notifier.NewAttachment("Foto „Käse“ \"1\"; "+strings.Repeat("漢", 100)+".png", "", servicetest.Picture)
	big := notifier.NewAttachment("all.bin", "application/octet-stream", bytes.Repeat([]byte{0, 1, 2, 13, 10, '.', 255}, 50_000))
	nested := notifier.NewAttachment("m.eml", "message/rfc822", []byte("Subject: x\r\n\r\nbody"))

	t.Run("text", func(t *testing.T) {
		m := servicetest.Message(t, "plain")
		m.Body = odd
		p := parseMail(t, mustSend(t, sender, s, s.url("mailto", "user", "?format=text"), m).data)
		if p.kind != "plain" || p.parts[0].text() != strings.TrimRight(odd, " ") || p.parts[0].params["charset"] != "utf-8" {
			t.Errorf("%s: %q", p.kind, p.parts)
		}
	})
	t.Run("HTML and text", func(t *testing.T) {
		p := parseMail(t, mustSend(t, sender, s, s.url("mailto", "user", ""), servicetest.Message(t, "html")).data)
		if p.kind != "alternative(plain, html)" || p.parts[1].text() != servicetest.Message(t, "html").Body ||
			!strings.Contains(p.parts[0].text(), "All 12 volumes & 3 sites") {
			t.Errorf("%s: %q", p.kind, p.parts)
		}
	})
	t.Run("link to acknowledge", func(t *testing.T) {
		p := parseMail(t, mustSend(t, sender, s, s.url("mailto", "user", ""), servicetest.Message(t, "button")).data)
		if p.kind != "alternative(plain, html)" || !strings.Contains(p.parts[0].text(), servicetest.AcknowledgeURL) ||
			!strings.Contains(p.parts[1].text(), `<a href="`+servicetest.AcknowledgeURL+`">Acknowledge</a>`) {
			t.Errorf("%s: %q", p.kind, p.parts)
		}
	})
	t.Run("Markdown", func(t *testing.T) {
		p := parseMail(t, mustSend(t, sender, s, s.url("mailto", "user", ""), servicetest.Message(t, "markdown")).data)
		if p.kind != "alternative(plain, html)" || !strings.Contains(p.parts[1].body, "<strong>bold</strong>") {
			t.Errorf("%s: %q", p.kind, p.parts)
		}
	})
	t.Run("files", func(t *testing.T) {
		m := servicetest.Message(t, "attach")
		m.Attachments = append(m.Attachments, photo, big, nested)
		p := parseMail(t, mustSend(t, sender, s, s.url("mailto", "user", ""), m).data)
		if p.kind != "mixed(alternative(plain, html), plain, png, png, octet-stream, octet-stream)" {
			t.Fatal(p.kind)
		}
		for i, a := range m.Attachments {
			want, _ := io.ReadAll(a.Open())
			if part := p.parts[2+i]; part.disposition != "attachment" || part.filename != a.Name ||
				part.params["name"] != a.Name || part.body != string(want) {
				t.Errorf("%q: %q %q, %d bytes", a.Name, part.disposition, part.filename, len(part.body))
			}
		}
	})
	t.Run("pictures in the text", func(t *testing.T) {
		m := servicetest.Message(t, "attach")
		m.Format, m.Body = notifier.HTML, `<p>see <img src="cid:graph.png"></p>`
		m.Attachments = append(m.Attachments, photo, notifier.NewAttachment("graph.png", "image/png", []byte("another")))
		p := parseMail(t, mustSend(t, sender, s, s.url("mailto", "user", "?inline=yes"), m).data)
		if p.kind != "mixed(alternative(plain, related(html, png, png, png)), plain)" {
			t.Fatal(p.kind)
		}
		if p.parts[2].id != "<graph.png>" || p.parts[2].body != string(servicetest.Picture) ||
			p.parts[4].body != "another" || p.parts[5].filename != "report.txt" {
			t.Errorf("%q", p.parts[2:])
		}
		for _, part := range p.parts[2:5] {
			if part.disposition != "inline" || !strings.Contains(p.parts[1].body, `<img src="cid:`+strings.Trim(part.id, "<>")+`">`) {
				t.Errorf("%s %s in %s", part.disposition, part.id, p.parts[1].body)
			}
		}
		p = parseMail(t, mustSend(t, sender, s, s.url("mailto", "user", "?inline=yes&format=text"), servicetest.Message(t, "attach")).data)
		if p.kind != "mixed(plain, plain, png)" || !strings.HasSuffix(p.parts[0].text(), "\n[Image: graph.png]") {
			t.Errorf("%s: %q", p.kind, p.parts[0].text())
		}
	})
	t.Run("files alone", func(t *testing.T) {
		m := servicetest.Message(t, "attach")
		m.Title, m.Body = "", ""
		p := parseMail(t, mustSend(t, sender, s, s.url("mailto", "user", "?format=text"), m).data)
		if _, has := p.header["Subject"]; p.kind != "mixed(plain, plain, png)" || has {
			t.Errorf("%s, %v", p.kind, p.header)
		}
	})
}

// TestInjection checks that no text of a message or URL adds header fields,
// parts or recipients.
func TestInjection(t *testing.T) {
	const evil = "x\r\nBcc: evil@example.org\r\n\r\n.\r\nRCPT TO:<evil@example.org>\r\n"
	s, sender := startMail(t, &mailServer{}), servicetest.NewSender(t)
	m := servicetest.Message(t, "html")
	m.Title, m.Body = evil, evil
	m.Identity = &notifier.Identity{Name: evil}
	m.Attachments = []*notifier.Attachment{
		notifier.NewAttachment(evil+`"; filename="y.exe`, "text/plain; x=\""+evil+"\"", []byte(evil)),
		notifier.NewAttachment(`a"><script>.png`, "image/png\r\nBcc: evil@example.org", []byte(evil)),
	}
	escaped := "x%0D%0ABcc:%20evil@example.org"
	for _, rest := range []string{
		"?inline=yes", "?name=" + escaped, "?from=%22" + escaped + "%22%3Cme@example.org%3E",
		"?%2BX-A=" + escaped, "?to=%22" + escaped + "%22%3Cyou@example.org%3E",
		"?cc=%22" + escaped + "%22%3Cyou@example.org%3E", "?reply=%22" + escaped + "%22%3Cyou@example.org%3E",
	} {
		got := mustSend(t, sender, s, s.url("mailto", "user", rest), m)
		p := parseMail(t, got.data)
		if p.header.Get("Bcc") != "" || slices.Contains(got.to, "evil@example.org") {
			t.Errorf("%s: to %q\n%s", rest, got.to, got.data)
		}
		for _, part := range p.parts {
			if part.filename != "" && part.body != evil {
				t.Errorf("%s: %q", rest, part.body)
			}
		}
	}
	for _, rest := range []string{
		"?%2BBcc=evil@example.org", "?%2Bcontent-type=text/html",
		"?%2BX%0D%0ABcc:=x", "?%2BX:%20y=x", "?%2BX-L%C3%A4nge=x",
	} {
		if _, err := sender.Parse(s.url("mailto", "user", rest), nil); err == nil {
			t.Errorf("%s is accepted", rest)
		}
	}
	for _, rest := range []string{
		"/you@example.org%0D%0ARCPT", "/%3Cyou@example.org%3E%20SIZE=1", "/you@example.org/you%3E%0D%0A@example.org",
	} {
		if got := mustSend(t, sender, s, s.url("mailto", "user", rest), m); !slices.Equal(got.to, []string{"you@example.org"}) {
			t.Errorf("%s: to %q", rest, got.to)
		}
	}
}

func TestInternational(t *testing.T) {
	s, sender := startMail(t, &mailServer{utf8: true}), servicetest.NewSender(t)
	got := mustSend(t, sender, s, s.url("mailto", "user", "/J%C3%BC%3Cyou@b%C3%BCcher.example%3E"), servicetest.Message(t, "plain"))
	if got.utf8 || got.to[0] != "you@xn--bcher-kva.example" {
		t.Errorf("to %q, SMTPUTF8 %v", got.to, got.utf8)
	}
	got = mustSend(t, sender, s, s.url("mailto", "user", "/J%C3%BC%3Cj%C3%BCrgen@b%C3%BCcher.example%3E"), servicetest.Message(t, "plain"))
	if !got.utf8 || got.to[0] != "jürgen@xn--bcher-kva.example" {
		t.Errorf("to %q, SMTPUTF8 %v", got.to, got.utf8)
	}
	if to := fmt.Sprint(addresses(t, parseMail(t, got.data).header, "To")); to != "[{Jü jürgen@xn--bcher-kva.example}]" {
		t.Errorf("to %s", to)
	}
	old := startMail(t, &mailServer{})
	r := servicetest.Send(t, sender, old.url("mailto", "user", "/j%C3%BCrgen@example.org"), servicetest.Message(t, "plain"), mailTime)
	if r.Err == nil || r.Temporary || !strings.Contains(r.Err.Error(), "letters beyond ASCII") || len(old.got()) != 0 {
		t.Errorf("got %v", r.Err)
	}
}
