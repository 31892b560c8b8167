package docs_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"text/template"
)

// setup returns the first block below a heading of docs/program-setups.md.
func setup(t *testing.T, title string) string {
	t.Helper()
	p := readPage(t, "docs/program-setups.md")
	content := strings.Split(readFile(t, p.path), "\n")
	line := 0
	for i, l := range content {
		if l == "## "+title {
			line = i + 1
		}
	}
	for _, b := range p.blocks {
		if line > 0 && b.line > line {
			return b.text
		}
	}
	t.Fatalf("%s has no block for %s", p.path, title)
	return ""
}

// dataFields matches a field that a command posts: in quotation marks, after a name.
var dataFields = regexp.MustCompile(`["']([a-z_]+)=([^"']*)["']`)

// TestSetups posts what programs send with the configurations that docs/program-setups.md
// gives. The programs' own syntax is replaced by values.
func TestSetups(t *testing.T) {
	g := startGateway(t)
	post := func(name, source, media, body string, want message) {
		t.Helper()
		r, err := http.NewRequest(http.MethodPost, addressOfOps+"/"+source, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", media)
		answer, text, err := g.do(r)
		if err != nil {
			t.Fatal(err)
		}
		if answer.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", name, text)
		}
		if got := g.take(); got != want {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}

	// The commands of Nagios and others post fields with macros and variables.
	values := strings.NewReplacer(
		"$NOTIFICATIONTYPE$", "PROBLEM", "$notification.type$", "PROBLEM", "$NOTIFY_NOTIFICATIONTYPE", "PROBLEM",
		"$HOSTNAME$", "db1", "$host.name$", "db1", "$NOTIFY_HOSTNAME", "db1", "${host}", "db1",
		"$HOSTADDRESS$", "192.0.2.7", "$address$", "192.0.2.7", "$NOTIFY_HOSTADDRESS", "192.0.2.7",
		"$SERVICEDESC$", "disk", "$service.name$", "disk",
		"$HOSTSTATE$", "DOWN", "$host.state$", "DOWN", "$SERVICESTATE$", "CRITICAL", "$service.state$", "CRITICAL",
		"$HOSTOUTPUT$", "no answer", "$host.output$", "no answer", "$SERVICEOUTPUT$", "91% & full", "$service.output$", "91% & full",
		"$HOSTACKAUTHOR$", "", "$SERVICEACKAUTHOR$", "", "$notification.author$", "", "$NOTIFY_NOTIFICATIONAUTHOR", "",
		"$HOSTACKCOMMENT$", "", "$SERVICEACKCOMMENT$", "", "$notification.comment$", "", "$NOTIFY_NOTIFICATIONCOMMENT", "",
		"$NOTIFY_MONITORING_HOST", "monitoring", "$OMD_SITE", "prod",
		"${name}", "disk", "${chart}", "disk.space", "${status}", "CRITICAL", "${value_string}", "91%", "${old_value_string}", "89%",
		"${info}", "free space", "${goto_url}", "https://app.netdata.cloud/x",
		"$service", "disk", "$state", "CRITICAL", "$output", "91% & full", "$path", "/check_mk/index.py",
	)
	host, service := message{"db1 is DOWN", "no answer\nAddress: 192.0.2.7", "failure"},
		message{"db1/disk is CRITICAL", "91% & full\nAddress: 192.0.2.7", "failure"}
	checkmk := service
	checkmk.Message += "\nSite: prod\nhttps://monitoring/prod/check_mk/index.py"
	for _, tt := range []struct {
		title, source string
		separator     string // between the commands of a block
		want          []message
	}{
		{"Nagios", "nagios", "define c", []message{host, service}},
		{"Icinga 2", "icinga", "object ", []message{host, service}},
		{"Checkmk", "checkmk", "curl ", []message{checkmk}},
	} {
		commands := strings.Split(setup(t, tt.title), tt.separator)[1:]
		for i, want := range tt.want {
			post(tt.title, tt.source, "application/x-www-form-urlencoded", form(commands[i], values), want)
		}
	}
	_, agent, _ := strings.Cut(setup(t, "Netdata"), "docurl")
	post("Netdata", "netdata", "application/x-www-form-urlencoded", form(agent, values),
		message{"disk on db1 is critical", "free space\nValue: 91% (before: 89%)\nChart: disk.space\nhttps://app.netdata.cloud/x", "failure"})

	_, gatus, _ := strings.Cut(setup(t, "Gatus"), "body: |\n")
	gatus, _, _ = strings.Cut(gatus, "    default-alert")
	gatus = regexp.MustCompile(`(?m)^ {6}`).ReplaceAllString(gatus, "")
	gatus = strings.NewReplacer("[ENDPOINT_NAME]", "shop", "[ENDPOINT_GROUP]", "core",
		"[ALERT_TRIGGERED_OR_RESOLVED]", "TRIGGERED", "[ENDPOINT_URL]", "https://shop.example.net",
		"[ALERT_DESCRIPTION]", "the shop is down", "[RESULT_ERRORS]", `got \"500\"`,
		"[RESULT_CONDITIONS]", "❌ - `[STATUS] (500) == 200`").Replace(gatus)
	post("Gatus", "gatus", "text/plain", gatus,
		message{"core/shop has failed", "the shop is down\ngot \"500\"\n❌ - [STATUS] (500) == 200\nhttps://shop.example.net", "failure"})

	// Argo CD's templates are Go templates with functions of Sprig.
	text := regexp.MustCompile(`(?m)^ *(\{"app".*\})$`).FindStringSubmatch(setup(t, "Argo CD"))
	if text == nil {
		t.Fatal("there is no body of Argo CD")
	}
	body, err := template.New("").
		Funcs(template.FuncMap{"toJson": func(v any) (string, error) { out, err := json.Marshal(v); return string(out), err }}).
		Parse(text[1])
	if err != nil {
		t.Fatal(err)
	}
	for _, status := range []string{`"operationState": {"phase": "Failed", "message": "no \"quota\""}, `, ""} {
		var data any
		err := json.Unmarshal([]byte(`{"context": {"argocdUrl": "https://argocd.example.net"},
		"app": {"metadata": {"name": "shop", "namespace": "argocd"}, "spec": {"project": "default"},
			"status": {`+status+`"health": {"status": "Degraded"}, "sync": {"status": "Synced"}}}}`), &data)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := body.Execute(&out, data); err != nil {
			t.Fatal(err)
		}
		want := message{
			"shop is degraded",
			"Health: Degraded\nSync: Synced\nProject: default\nhttps://argocd.example.net/applications/argocd/shop",
			"failure",
		}
		if status != "" {
			want = message{"shop: sync has failed", "no \"quota\"\n" + want.Message, "failure"}
		}
		post("Argo CD", "argocd", "application/json", out.String(), want)
	}
}

// TestSetupsOfJSON posts the payloads of docs/program-setups.md that are JSON with variables.
func TestSetupsOfJSON(t *testing.T) {
	g := startGateway(t)
	for _, tt := range []struct {
		title, source string
		payload       func(text string) string
		want          message
	}{
		{"Datadog", "datadog", func(text string) string {
			return strings.NewReplacer("$ALERT_TRANSITION", "Recovered", "$ALERT_TYPE",
				"success", "$ALERT_STATUS", "disk was < 0.9", "$ALERT_SCOPE", "host:db1",
				"$EVENT_TITLE", "[Recovered] Disk is full", "$TEXT_ONLY_MSG", "It is fine.",
				"$HOSTNAME", "db1", "$LINK", "https://app.datadoghq.com/monitors/1").Replace(text)
		}, message{"[Recovered] Disk is full", "It is fine.\ndisk was < 0.9\nScope: host:db1\nhttps://app.datadoghq.com/monitors/1", "success"}},
		{
			"New Relic", "newrelic", func(text string) string {
				lines := strings.NewReplacer("{{ json isAcknowledged }}", "true",
					"{{ json accumulations.runbookUrl }}", `["https://runbooks.example.net/disk"]`).Replace(text)
				return `{"id": "1", "issueUrl": "https://one.newrelic.com/1", "title": ` +
					`"Disk is full", "priority": "HIGH", "state": "ACTIVATED",` + lines + "}"
			},
			message{"Acknowledged: Disk is full", "Priority: HIGH\nRunbook: https://runbooks.example.net/disk\nhttps://one.newrelic.com/1", "info"},
		},
	} {
		if err := g.post(addressOfOps+"/"+tt.source, tt.payload(setup(t, tt.title))); err != nil {
			t.Errorf("%s: %v", tt.title, err)
		}
		if got := g.take(); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.title, got, tt.want)
		}
	}
}

// TestSetupOfCrowdSec posts the text that the template of CrowdSec makes of alerts.
func TestSetupOfCrowdSec(t *testing.T) {
	_, text, _ := strings.Cut(setup(t, "CrowdSec"), "format: |\n")
	text, rest, _ := strings.Cut(text, "url: ")
	format, err := template.New("").Parse(regexp.MustCompile(`(?m)^  `).ReplaceAllString(text, ""))
	if err != nil {
		t.Fatal(err)
	}
	type alert struct{ Message *string }
	first, second := "Ip 192.0.2.1 performed 'ssh-bf'", "Ip 192.0.2.2 performed 'http-probing'"
	var body bytes.Buffer
	if err := format.Execute(&body, []*alert{{&first}, {&second}}); err != nil {
		t.Fatal(err)
	}
	_, headers, _ := strings.Cut(rest, "headers:\n")
	headers = strings.ReplaceAll(headers, "  ", "")
	g := startGateway(t)
	if err := g.postWith(addressOfOps, body.String(), []byte(strings.TrimSpace(headers))); err != nil {
		t.Fatal(err)
	}
	if got, want := g.take(), (message{"CrowdSec", first + "\n" + second, "info"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// form returns the fields of a command as a form, with values.
func form(command string, values *strings.Replacer) string {
	fields := url.Values{}
	for _, m := range dataFields.FindAllStringSubmatch(command, -1) {
		fields.Set(m[1], values.Replace(m[2]))
	}
	return fields.Encode()
}
