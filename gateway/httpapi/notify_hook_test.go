package httpapi_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

const typeXML = "application/xml"

// appriseXML is the body that xml:// of Apprise 1.2 sends.
func appriseXML(fields, attachments string) string {
	return `<?xml version='1.0' encoding='utf-8'?>
<soapenv:Envelope
    xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/"
    xmlns:xsd="http://www.w3.org/2001/XMLSchema"
    xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
    <soapenv:Body>
        <Notification xmlns:xsi="https://raw.githubusercontent.com/caronc/apprise/master/apprise/assets/NotifyXML-1.1.xsd">
            ` + fields + `
            ` + attachments + `
       </Notification>
    </soapenv:Body>
</soapenv:Envelope>`
}

// TestAppriseWebhooks posts recorded requests of json://, form:// and xml:// of Apprise 1.2 to the
// address of a key. The text was lost: 400, or 200 with a file. The form with a file comes from
// this gateway, because Apprise 1.2 fails to send one.
func TestAppriseWebhooks(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := newSite(t, site.Options{Keys: []site.KeyOptions{gatewaytest.Key("ops", s.NotifyURL("/ops"))}})
	const (
		text   = `91% of <b>/var & "x"`
		fields = `<Version>1.1</Version><Subject>Disk full</Subject><MessageType>failure</MessageType><Message>91% of &lt;b&gt;/var &amp; ` +
			`&quot;x&quot;</Message>`
	)
	form := "--b\r\nContent-Disposition: form-data; name=\"version\"\r\n\r\n1.0\r\n--b\r\nContent-Disposition: form-data; " +
		"name=\"title\"\r\n\r\nDisk full\r\n" +
		"--b\r\nContent-Disposition: form-data; name=\"message\"\r\n\r\n" + text +
		"\r\n--b\r\nContent-Disposition: form-data; name=\"type\"\r\n\r\nfailure\r\n" +
		"--b\r\nContent-Disposition: form-data; name=\"file01\"; filename=\"note.txt\"\r\nContent-Type: text/plain\r\n\r\nthe file\n\r\n--b--\r\n"
	for _, tt := range []struct {
		name, target, contentType, body, files string
	}{
		{"json", "", gatewaytest.TypeJSON, `{"version": "1.0", "title": "Disk full", "message": "91% of <b>/var & \"x\"", "attachments": [], ` +
			`"type": "failure"}`, ""},
		{
			"json with a file", "", gatewaytest.TypeJSON,
			`{"version": "1.0", "title": "Disk full", "message": "91% of <b>/var & \"x\"", "attachments": [{"filename": "note.txt", "base64": ` +
				`"dGhlIGZpbGUK", "mimetype": "text/plain"}], "type": "failure"}`, "note.txt text/plain the file\n",
		},
		{"form", "", gatewaytest.TypeForm, "version=1.0&title=Disk+full&message=91%25+of+%3Cb%3E%2Fvar+%26+%22x%22&type=failure", ""},
		{"form with a file", "", "multipart/form-data; boundary=b", form, "note.txt text/plain the file\n"},
		{"xml", "", typeXML, appriseXML(fields, ""), ""},
		{
			"xml with a file", "", typeXML, appriseXML(fields,
				`<Attachments format="base64"><Attachment filename="note.txt" mimetype="text/plain">dGhlIGZpbGUK</Attachment></Attachments>`),
			"note.txt text/plain the file\n",
		},
		{"xml as text/xml", "", "text/xml; charset=utf-8", appriseXML(fields, ""), ""},
		// The formerly needed mapping still works.
		{
			"json with a mapping", "?:message=body", gatewaytest.TypeJSON,
			`{"version": "1.0", "title": "Disk full", "message": "91% of <b>/var & \"x\"", "attachments": [], "type": "failure"}`, "",
		},
		{"xml with a mapping", "?:Message=body&:Subject=title&:MessageType=type", typeXML, appriseXML(fields, ""), ""},
	} {
		got := g.Post("/notify/ops"+tt.target, tt.contentType, tt.body)
		if got.Status != 200 || strings.Contains(got.Body, "WARNING") {
			t.Errorf("%s: %d %s", tt.name, got.Status, got.Body)
			continue
		}
		if a := s.One(t); a.Title != "Disk full" || a.Message != text || a.Type != "failure" || a.Files() != tt.files {
			t.Errorf("%s: arrived %+v", tt.name, a)
		}
	}
}

// TestGatewaysInARow sends with json://, form://, xml:// and apprise:// to the address of a
// key of another gateway. Text, type, files, incident and the address to acknowledge it
// arrive.
func TestGatewaysInARow(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := newSite(t, site.Options{Egress: gatewaytest.Loopback(), Keys: []site.KeyOptions{gatewaytest.Key("ops", s.NotifyURL("/ops"))}})
	api := servicetest.API(func(q *http.Request, body string) (int, string) {
		r := httptest.NewRequest(q.Method, q.URL.RequestURI(), strings.NewReader(body))
		maps.Copy(r.Header, q.Header)
		got := g.Do(r)
		return got.Status, got.Body
	})
	for _, url := range []string{
		"json://127.0.0.1/notify/ops", "form://127.0.0.1/notify/ops", "xml://127.0.0.1/notify/ops",
		"apprise://127.0.0.1/ops", "apprise://127.0.0.1/ops?method=json",
	} {
		for _, files := range [][]*notifier.Attachment{nil, {notifier.NewAttachment("graph.txt", "text/plain", []byte("the\x00file\n"))}} {
			incident := notifier.Incident{Name: "disk db1", ID: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", State: notifier.Open}
			m := &notifier.Message{
				Title: "Disk full", Body: "91% é <漢字>", Type: notifier.Failure, Incident: incident,
				Link: notifier.Link{Label: notifier.AcknowledgeLabel, URL: servicetest.AcknowledgeURL}, Attachments: files,
			}
			if err := api.Destination(t, url)(m); err != nil {
				t.Errorf("%s: %v", url, err)
			}
			want, wantFiles := notifier.Incident{Name: incident.ID}.For("ops", "").ID, ""
			if files != nil {
				wantFiles = "graph.txt text/plain the\x00file\n"
			}
			a := s.One(t)
			if a.Title != "Disk full" || !strings.HasPrefix(a.Message, "91% é <漢字>\n") || a.Type != "failure" || a.Incident != want ||
				a.Files() != wantFiles {
				t.Errorf("%s: arrived %+v", url, a)
			}
			if strings.Count(a.Message, "Acknowledge: "+servicetest.AcknowledgeURL) != 1 {
				t.Errorf("%s: the text is %q", url, a.Message)
			}
		}
	}
}

// TestXMLInLatin1 checks that a text that Apprise sends in ISO 8859-1, though it declares
// UTF-8, arrives.
func TestXMLInLatin1(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := newSite(t, site.Options{Keys: []site.KeyOptions{gatewaytest.Key("ops", s.NotifyURL("/ops"))}})
	got := g.Post("/notify/ops", typeXML,
		appriseXML("<Version>1.1</Version><Subject>K\xfcche</Subject><MessageType>info</MessageType><Message>Rauch \xa7</Message>", ""))
	if got.Status != 200 {
		t.Fatalf("%d %s", got.Status, got.Body)
	}
	if a := s.One(t); a.Title != "Küche" || a.Message != "Rauch §" {
		t.Errorf("arrived %+v", a)
	}
}

// TestUnreadFields checks that the answer has a warning about each field without effect, and says
// which one it may stand for.
func TestUnreadFields(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := newSite(t, site.Options{Keys: []site.KeyOptions{gatewaytest.Key("ops", s.NotifyURL("/ops"))}})
	var many strings.Builder
	for i := range 9 {
		fmt.Fprintf(&many, `,"f%d":1`, i)
	}
	for _, tt := range []struct {
		target, contentType, body string
		want                      []string
	}{
		{"", gatewaytest.TypeJSON, `{"body":"x","titel":"Disk"}`, []string{"The field titel has no effect; is it the field title?"}},
		{"", gatewaytest.TypeForm, "body=x&titel=Disk", []string{"The field titel has no effect; is it the field title?"}},
		{
			"", "multipart/form-data; boundary=b",
			"--b\r\nContent-Disposition: form-data; name=message\r\n\r\nlost\r\n--b\r\nContent-Disposition: form-data; name=f; " +
				"filename=a.txt\r\n\r\n1\r\n--b--\r\n",
			[]string{"The field message has no effect; is it the field body?"},
		},
		{
			"", gatewaytest.TypeJSON, `{"attach":{"base64":"MQ=="},"message":"lost"}`,
			[]string{"The field message has no effect; is it the field body?"},
		},
		{
			"", gatewaytest.TypeJSON, `{"body":"x","Title":"Disk","severity":"critical","zzz":1}`,
			[]string{
				"The field Title has no effect; is it the field title?", "The field severity has no effect; is it the field type?",
				"The field zzz has no effect",
			},
		},
		{
			"", gatewaytest.TypeJSON, `{"body":"x"` + many.String() + `}`,
			[]string{
				"The field f0 has no effect", "The field f1 has no effect", "The field f2 has no effect", "The field f3 has no effect",
				"The field f4 has no effect", "4 more fields have no effect",
			},
		},
		{"", gatewaytest.TypeJSON, `{"version":"1.0","title":"a","message":"y","type":"info","body":"x"}`, nil}, // ?:body=x of its URL
		{"", typeXML, appriseXML("<Version>1.1</Version><Subject>a</Subject><Message>x</Message><MessageType>info</MessageType><Host>db1</Host>",
			""), []string{"The field Host has no effect"}},
		// A field without a name or a value, or with a mapping, is no mistake.
		{"", gatewaytest.TypeJSON, `{"body":"x","titel":"","message":null,"a secret = 1":2,"acknowledge_url":"https://x"}`, nil},
		{"?:text=body", gatewaytest.TypeJSON, `{"text":"x","titel":"Disk"}`, nil},
		{"", "text/plain", "titel=x", nil},
	} {
		r := httptest.NewRequest("POST", "/notify/ops"+tt.target, strings.NewReader(tt.body))
		r.Header = http.Header{"Content-Type": {tt.contentType}, "Accept": {gatewaytest.TypeJSON}}
		got := g.Do(r)
		var answer struct{ Details [][3]string }
		if err := json.Unmarshal([]byte(got.Body), &answer); err != nil || got.Status != 200 {
			t.Errorf("%s: %d %s", tt.body, got.Status, got.Body)
			continue
		}
		s.One(t)
		var warnings []string
		for _, d := range answer.Details {
			if d[0] == "WARNING" {
				warnings = append(warnings, d[2])
			}
		}
		if strings.Join(warnings, "\n") != strings.Join(tt.want, "\n") {
			t.Errorf("%s: the warnings are %q, want %q", tt.body, warnings, tt.want)
		}
	}
}

// TestForeignXML checks the answers to XML that is not the message of an xml:// URL, and
// that hostile XML is refused.
func TestForeignXML(t *testing.T) {
	t.Parallel()
	s := gatewaytest.NewStation(t)
	g := newSite(t, site.Options{Keys: []site.KeyOptions{gatewaytest.Key("ops", s.NotifyURL("/ops"))}})
	many := strings.Repeat("<a>", 100_000)
	for _, tt := range []struct {
		body   string
		status int
		want   string
	}{
		{"", 400, "body is missing"},
		{"<alert><text>x</text></alert>", 415, "xml://"},
		{"text", 415, "xml://"},
		{"<alert>", 400, "ends too early"},
		{"<a", 400, "XML is invalid"},
		{"<Notification><Subject>x</Subject>", 400, "ends too early"},
		{"<Notification><Subject>x</Subject></Notification>", 400, "body is missing"},
		{"</Notification>", 400, "XML is invalid"},
		{`<?xml version="1.0" encoding="latin1"?><Notification/>`, 400, "body is missing"},
		{`<!DOCTYPE x [<!ENTITY e "eeee">]><Notification><Message>&e;</Message></Notification>`, 400, "XML is invalid"},
		{many, 400, "levels"},
		{"<Notification>" + many, 400, "levels"},
		{"<Notification>" + strings.Repeat("<a/>", 100_000) + "</Notification>", 400, "fields"},
		{"<Notification><Attachments>" + strings.Repeat("<Attachment/>", 100_000) + "</Attachments></Notification>", 400, "fields"},
		{"\xff\xfe", 400, "body is missing"},
		{"<Notification>\xff</Notification", 400, "XML is invalid"},
	} {
		got := g.Post("/notify/ops", typeXML, tt.body)
		if got.Status != tt.status || !strings.Contains(got.Body, tt.want) || len(s.Take()) > 0 {
			t.Errorf("%.100s: %d %s", tt.body, got.Status, got.Body)
		}
	}
}

// TestBodyUnderAnotherName checks the error for a message whose text is in another field.
func TestBodyUnderAnotherName(t *testing.T) {
	t.Parallel()
	g := newSite(t, site.Options{Keys: []site.KeyOptions{gatewaytest.Key("ops", "json://127.0.0.1:1")}})
	got := g.Post("/notify/ops", gatewaytest.TypeJSON, `{"title":"Disk","message":"full"}`)
	if got.Status != 400 || !strings.Contains(got.Body, "if it is the field message, rename that, or add ?:message=body to the address") {
		t.Errorf("%d %s", got.Status, got.Body)
	}
}
