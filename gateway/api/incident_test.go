package api

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/message"
)

// TestIncidentField checks that the incident of a message arrives in every way in
// which a field can.
func TestIncidentField(t *testing.T) {
	g := newGateway(t, nil)
	const multipartType = "multipart/form-data; boundary=b"
	part := func(header, value string) string { return "--b\r\n" + header + "\r\n\r\n" + value + "\r\n" }
	for name, tt := range map[string]struct {
		query, contentType, body, header string
		want                             string
	}{
		"JSON":                  {"", typeJSON, `{"body":"B","incident":"disk db1"}`, "", "disk db1"},
		"null":                  {"", typeJSON, `{"body":"B","incident":null}`, "", ""},
		"form":                  {"", typeForm, "body=B&incident=disk+db1", "", "disk db1"},
		"white space around it": {"", typeForm, "body=B&incident=+disk+", "", "disk"},
		"multipart": {"", multipartType, part(`Content-Disposition: form-data; name="body"`, "B") +
			part(`Content-Disposition: form-data; name="incident"`, "disk db1") + "--b--\r\n", "", "disk db1"},
		"the part payload": {
			"", multipartType,
			part("Content-Disposition: form-data; name=\"payload\"\r\nContent-Type: application/json", `{"body":"B","incident":"disk db1"}`) +
				"--b--\r\n", "", "disk db1",
		},
		"query string":          {"?incident=disk+db1", typeForm, "body=B", "", "disk db1"},
		"the payload before it": {"?incident=Q", typeJSON, `{"body":"B","incident":"P"}`, "", "P"},
		"header":                {"", "text/plain", "B", "disk db1", "disk db1"},
		"an encoded header":     {"", "text/plain", "B", "=?UTF-8?Q?Stra=C3=9Fe?=", "Straße"},
		"a header of a form":    {"", typeForm, "body=B", "disk db1", ""},
		"mapping":               {"?:labels.host=incident", typeJSON, `{"body":"B","labels":{"host":"db1"}}`, "", "db1"},
		"mapping of a number":   {"?:monitor.id=incident", typeJSON, `{"body":"B","monitor":{"id":17}}`, "", "17"},
		"a constant":            {"?:incident=backup", typeJSON, `{"body":"B"}`, "", "backup"},
		"acknowledged": {
			"?:status=type&:id=incident", typeJSON, `{"body":"B","status":"Acknowledged","id":"7"}`, "",
			"7 acknowledged",
		},
		"acknowledged, no incident": {"?:status=type", typeJSON, `{"body":"B","status":"acknowledged"}`, "", ""},
	} {
		r := httptest.NewRequest("POST", "/notify"+tt.query, strings.NewReader(tt.body))
		r.Header.Set("Content-Type", tt.contentType)
		r.Header.Set("Accept", typeJSON)
		if tt.header != "" {
			r.Header.Set("Incident", tt.header)
		}
		if got := do(g, r); got.status != 200 {
			t.Errorf("%s: status %d: %s", name, got.status, got.body)
			continue
		}
		if got := g.one(t).incident; got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}

// TestBadIncidents checks that an unusable name is either an error that says why or a warning, and
// that no message is lost for its length.
func TestBadIncidents(t *testing.T) {
	g := newGateway(t, nil)
	for name, tt := range map[string]struct {
		query, contentType, body string
		want                     string
	}{
		"a control character": {"", typeJSON, `{"body":"B","incident":"a\nb"}`, "the field incident: it has a control character"},
		"in the query string": {"?incident=a%00b", typeForm, "body=B", "the field incident: it has a control character"},
		"a number":            {"", typeJSON, `{"body":"B","incident":17}`, "the field incident is a number; it must be a string"},
		"an array":            {"", typeJSON, `{"body":"B","incident":["a"]}`, "the field incident is an array"},
		"a mapped object": {
			"?:a=incident", typeJSON, `{"body":"B","a":{"b":1}}`,
			"the field incident must be a string, a number or a boolean",
		},
	} {
		if got := post(g, "/notify"+tt.query, tt.contentType, tt.body); got.status != 400 || !strings.Contains(got.body, tt.want) ||
			len(g.take()) > 0 {
			t.Errorf("%s: status %d: %s, want %s", name, got.status, got.body, tt.want)
		}
	}
	got := post(g, "/notify", typeForm, "body=B&incident="+strings.Repeat("x", 300))
	if m := g.one(t); got.status != 200 || !strings.Contains(got.body, "longer than 255 bytes") || !strings.HasPrefix(m.incident, "sha256:") {
		t.Errorf("a long name: status %d, incident %q: %s", got.status, m.incident, got.body)
	}
}

// TestIncidentOfPayload checks that a payload of another program is not lost
// because of its incident.
func TestIncidentOfPayload(t *testing.T) {
	for name, tt := range map[string]struct{ in, want, warning string }{
		"a name":              {"disk db1", "disk db1", ""},
		"a control character": {"disk\tdb1\x01", "sha256:", "has a control character"},
		"a long one":          {strings.Repeat("x", 300), "sha256:", "longer than 255 bytes"},
	} {
		q := newRequest(message.Limits{})
		if err := q.SetContent(Content{Body: "B", Incident: tt.in}); err != nil {
			t.Fatal(err)
		}
		m, err := q.Message()
		if err != nil || !strings.HasPrefix(m.Incident.Name, tt.want) || strings.Join(q.warnings, "") == "" != (tt.warning == "") ||
			!strings.Contains(strings.Join(q.warnings, ""), tt.warning) {
			t.Errorf("%s: %+v, %v, %q", name, m, err, q.warnings)
		}
	}
}
